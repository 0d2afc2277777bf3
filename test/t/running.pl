# Fits that run in sessions, as others see them in ag_jobs, and ag_pg.log_fits.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('running');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\n");
$node->start;
make_data($node);
$node->safe_psql('postgres', q{CREATE ROLE analyst LOGIN; CREATE ROLE nosy LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO analyst;});
$node->safe_psql('postgres', q{CREATE DATABASE other});
$node->safe_psql('other', q{CREATE EXTENSION ag_pg});

sub seen
{
	my ($what, %at) = @_;
	return $node->safe_psql($at{database} // 'postgres', "SELECT $what FROM ag_jobs WHERE pid IS NOT NULL", extra_params => [ '-U', $at{role} // 'postgres' ]);
}
sub left { return $node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}); }

is(seen('count(*)'), '0', 'nothing runs');
my $fit = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-U', 'analyst', '-c', slow_fit() ], '>', \my $out, '2>', \my $err);
ok(wait_until(20, sub { seen(q{count(*) FILTER (WHERE phase LIKE 'fitting%' AND percent > 0)}) eq '1' }), 'others see a fit in a session');
is(seen(q{id IS NULL, state, model, data, label, owner, elapsed > 0, percent BETWEEN 0 AND 100, remaining BETWEEN 0 AND 300, message <> '', submitted_at = started_at, ended_at IS NULL}),
	't|running|big_y|big|y|analyst|t|t|t|t|t|t', 'what it is, whose, and how far');
is(seen('count(*)', role => 'analyst'), '1', 'its owner sees it');
is(seen('count(*)', role => 'nosy'), '0', 'another role does not');
is(seen('count(*)', database => 'other'), '0', 'nor another database');
my $pid = seen('pid');
is($node->safe_psql('postgres', "SELECT query LIKE 'SELECT ag_fit%' FROM pg_stat_activity WHERE pid = $pid"), 't', 'pid is the session');
my @waits = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ? ('AgTrainer', 'AgFit') : ('Extension', 'Extension');
ok($node->poll_query_until('postgres', qq{SELECT string_agg(concat_ws(' ', backend_type, wait_event_type, wait_event), ', ' ORDER BY backend_type)
	= 'ag_pg supervisor Extension $waits[0], client backend Extension $waits[1]' FROM pg_stat_activity WHERE backend_type LIKE 'ag_pg%' OR pid = $pid}), 'who waits for what');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$fit->finish;
like($err, qr/canceling statement/, 'which is cancelled by it');
is(seen('count(*)'), '0', 'then it is gone');
ok(wait_until(3, sub { left() eq '0' }), 'and leaves no lock');

# a session that looks while its own fit reads rows sees itself
is($node->safe_psql('postgres', q{SELECT ag_fit('SELECT x, y, (SELECT count(*) FROM ag_jobs WHERE pid = pg_backend_pid())::int AS self FROM small', 'y', '} . quick_options('"name": "looks"') . q{')}), 'looks', 'a fit whose query looks at ag_jobs');
is($node->safe_psql('postgres', q{SELECT min::int || ' ' || max::int FROM ag_features WHERE model = 'looks' AND feature = 'self'}), '1 1', 'it sees itself');

# two fits in one transaction, one of which fails
my ($rc, $two) = $node->psql('postgres', q{BEGIN; SAVEPOINT s; SELECT ag_fit('SELECT x, ''NaN''::float8 AS y FROM small', 'y', '{"name": "none"}'); ROLLBACK TO s; SELECT ag_fit('small', 'y', '} . quick_options('"name": "second"') . q{');
	SELECT count(*) FROM ag_jobs WHERE pid IS NOT NULL; COMMIT}, on_error_stop => 0);
like($two, qr/second\n0/, 'a fit that failed and one that ended are seen no more in their own transaction');

# the log
my $from = -s $node->logfile;
$node->safe_psql('postgres', q{SELECT ag_fit('small', 'y', '} . quick_options('"name": "silent"') . q{')});
$node->safe_psql('postgres', q{SET ag_pg.log_fits = on; SELECT ag_fit('small', 'y', '} . quick_options('"name": "told"') . q{')});
my $log = slurp_file($node->logfile, $from);
like($log, qr/LOG:  fitted model "told", version 1, on \d+ rows in [\d.]+ s: best model \S+, root_mean_squared_error -[\d.]+/, 'ag_pg.log_fits tells of a fit');
unlike($log, qr/fitted model "silent"/, 'and is off by default');
($rc, $out, $err) = $node->psql('postgres', 'SELECT ag_version(); SET ag_pg.log_fits = on', extra_params => [ '-U', 'analyst' ]);
like($err, qr/permission denied to set parameter/, 'it is for superusers to set');
$node->append_conf('postgresql.conf', 'ag_pg.log_fits = on');
$node->reload;
my $job = $node->safe_psql('postgres', q{SELECT ag_fit_async('small', 'y', '} . quick_options('"name": "job"') . q{')});
is($node->safe_psql('postgres', "SELECT ag_wait($job)"), 'succeeded', 'a job');
like(slurp_file($node->logfile, $from), qr/LOG:  fitted model "job", version 1/, 'is told of too');

# the trainer's sandbox: on for CPUs, also where GPUs were asked for and aren't there; off by the setting alone
sub seccomp
{
	my (%how) = @_;
	my $slow = start_fit($node, ($how{settings} // '') . slow_fit($how{more}));
	my ($supervisor, $trainer) = wait_for_training($node);
	my $status = slurp_file("/proc/$trainer/status");
	$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%SELECT ag_fit%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()});
	end_fit($slow);
	return $status =~ /^Seccomp:\s*(\d)/m ? $1 : 'none';
}
SKIP:
{
	skip 'this kernel has no seccomp', 9 unless slurp_file('/proc/self/status') =~ /^Seccomp:/m;
	is(seccomp(), '2', 'the trainer is in a sandbox');
	is(seccomp(more => '"num_gpus": 1'), '2', 'also where it looked for GPUs first');
	is(seccomp(settings => 'SET ag_pg.sandbox = off;'), '0', 'ag_pg.sandbox = off: in none');
	($rc, $out, $err) = $node->psql('postgres', 'SELECT ag_version(); SET ag_pg.sandbox = off', extra_params => [ '-U', 'analyst' ]);
	like($err, qr/permission denied to set parameter/, 'which is for superusers to set');
	is($node->safe_psql('postgres', q{SELECT status FROM ag_doctor() WHERE "check" = 'sandbox'}), 'ok', 'the doctor looks');
	$node->psql('postgres', q{SELECT ag_fit('small', 'y', '} . quick_options('"num_gpus": 1, "verbosity": 3') . q{')}, stderr => \$err);
	my $found = $node->safe_psql('postgres', q{SELECT found FROM ag_doctor() WHERE "check" = 'sandbox'});
	like($err, $found =~ /no Landlock/ ? qr/The files that the trainer sees are not limited: / : qr/Of files the trainer sees those only that a GPU's driver needs/,
		'who looks for GPUs sees no other files');
	$node->psql('postgres', q{SELECT ag_fit('small', 'y', '} . quick_options('"verbosity": 3') . q{')}, stderr => \$err);
	unlike($err, qr/files/, 'who does not look for them sees none');
	$node->psql('postgres', q{SET ag_pg.sandbox = off; SELECT ag_fit('small', 'y', '} . quick_options('"num_gpus": 1, "verbosity": 3') . q{')}, stderr => \$err);
	unlike($err, qr/Of files/, 'without a sandbox all');
	is($node->safe_psql('postgres', q{SET ag_pg.sandbox = off; SELECT status FROM ag_doctor() WHERE "check" = 'sandbox'}), 'warn', 'and warns when it is off');
}
$node->stop;
done_testing();
