# Many at once: clients predict by a name while fits give it new versions and drop old ones. No call fails, no session grows, nothing is left.
#
# AG_CROWD_SECONDS=300 AG_CROWD_CLIENTS=64 AG_CROWD_FITS=16 is the long mode.
use strict;
use warnings;
use lib 'test/perl';
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 180 + ($ENV{AG_CROWD_SECONDS} // 5); } # of the session that looks, all in all
use AgFit;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{AG_CROWD_SECONDS} // 5;
my $n_clients = $ENV{AG_CROWD_CLIENTS} // 8;
my $n_fits = $ENV{AG_CROWD_FITS} // 3;

my $node = PostgreSQL::Test::Cluster->new('crowd');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nmax_connections = 100\nmax_worker_processes = 32\n");
$node->start;
make_data($node);
my $boot = boot_time($node);
my $fit = sub { my ($name) = @_; return "SELECT ag_fit('small', 'y', '" . quick_options(qq{"name": "$name"}) . "')"; };
$node->safe_psql('postgres', $fit->("shared")) for 1 .. 2;

my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/predict.sql", q{SELECT ag_predict('shared', small), ag_predict('shared', jsonb_build_object('x', x)) FROM small LIMIT 20;} . "\n");
# The same name and one of each client's own, in a session or as a job; the versions before the last few go, each by one client's hand.
append_to_file("$dir/fit.sql", $fit->('shared') . ";\n" . $fit->('own_:client_id') =~ s/ag_fit/ag_fit_async/r . ";\n"
	  . "BEGIN;\nSELECT pg_advisory_xact_lock(4711000000);\n"
	  . q{SELECT count(ag_drop('shared@' || v)) FROM (SELECT max(version) - 3 - :client_id AS v FROM ag_models WHERE name = 'shared') m
	WHERE EXISTS (SELECT FROM ag_predictor WHERE name = 'shared' AND version = v);} =~ s/\n\s*/ /r . "\nCOMMIT;\n");

# A session that looks now and then: what it keeps does not grow with the versions it has seen.
my $watch = $node->background_psql('postgres');
my $watched = $watch->query_safe('SELECT pg_backend_pid()');
my $has_contexts = $node->safe_psql('postgres', 'SHOW server_version_num') >= 140000;
my $memory = sub {
	$watch->query_safe(q{SELECT count(ag_predict('shared', small)) FROM small});
	return (slurp_file("/proc/$watched/status") =~ /^RssAnon:\s*(\d+) kB/m)[0] * 1024 unless $has_contexts;
	return $watch->query_safe('SELECT sum(total_bytes) FROM pg_backend_memory_contexts');
};
$memory->() for 1 .. 3;
my $at_first = $memory->();

my %out;
my @runs = map {
	my ($what, $n) = @$_;
	$out{$what} = '';
	IPC::Run::start([ 'pgbench', '-n', '-c', $n, '-j', 2, '-T', $seconds, '-f', "$dir/$what.sql", $node->connstr('postgres') ],
		'<', \undef, '>&', \$out{$what});
} [ predict => $n_clients ], [ fit => $n_fits ];
my $end = time + $seconds;
while (time < $end)
{
	$memory->();
	select undef, undef, undef, 0.2;
}
$_->finish for @runs;
for my $what ('predict', 'fit')
{
	# pgbench counts those from 15 on; before, a client that failed had its own line
	my ($counts) = `pgbench --version` =~ /(\d+)/;
	($counts >= 15 ? like($out{$what}, qr/number of failed transactions: 0 /, "$what: none failed") : unlike($out{$what}, qr/aborted|\berror:/i, "$what: none failed"))
	  or diag($out{$what});
	like($out{$what}, qr/transactions actually processed: [1-9]/, "$what: it went on");
	unlike($out{$what}, qr/ERROR|aborted|FATAL/, "$what: no error") or diag($out{$what});
}
my $versions = $node->safe_psql('postgres', q{SELECT max(version) FROM ag_predictor WHERE name = 'shared'});
my $at_last = $memory->();
note("$versions versions, $at_first bytes at first, $at_last at last");
cmp_ok($versions, '>', 3, 'versions came while others predicted');
cmp_ok($at_last, '<', $at_first + 1_000_000, 'a session does not grow with them');
$watch->quit;

ok($node->poll_query_until('postgres', q{SELECT NOT EXISTS (SELECT FROM ag_jobs WHERE state IN ('queued', 'running'))}), 'all jobs come to their end');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM ag_jobs}), 'succeeded', 'and succeed');
nothing_left($node, 'afterwards');
is(boot_time($node), $boot, 'the server never restarted');
$node->stop;
done_testing();
