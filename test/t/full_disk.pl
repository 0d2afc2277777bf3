# No room for a model's rows: the call or the job says so, nothing half is stored, and the next fit works. The disk seems full because the
# processes of the server may not write files beyond a size (RLIMIT_FSIZE), which is where the TOAST table of the parts ends.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

system('prlimit --version >/dev/null 2>&1') == 0 or plan(skip_all => 'no prlimit');

my $node = PostgreSQL::Test::Cluster->new('full');
# WAL must go on: its segments stay under the limit. So must the memory that fits share with the server, so it is no file.
$node->init(extra => ['--wal-segsize=1']);
$node->append_conf('postgresql.conf', "fsync = off\ndynamic_shared_memory_type = sysv\n");
$node->start;
make_data($node);
my $fit = sub { my ($name) = @_; return "SELECT ag_fit('small', 'y', '" . quick_options(qq{"name": "$name"}) . "')"; };
is($node->safe_psql('postgres', $fit->('first')), 'first', 'a fit, with room');

# The table grows to where it can grow no more.
$node->safe_psql(
	'postgres', q{
	INSERT INTO ag_member_part SELECT p.predictor, 1000000000, i, string_agg(decode(md5(i || ' ' || j), 'hex'), ''), 0
		FROM (SELECT predictor FROM ag_member_part LIMIT 1) p, generate_series(1, 40) i, generate_series(1, 16000) j GROUP BY 1, 3;
	CHECKPOINT;
});
my $size = $node->safe_psql('postgres', q{SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'ag_member_part'});
cmp_ok($size, '>', 8_000_000, 'a table of some size');
my $nothing_half = sub {
	my ($name) = @_;
	is($node->safe_psql('postgres', q{SELECT string_agg(name, ' ' ORDER BY name) FROM ag_predictor}), 'first', "$name: no half model");
	nothing_left($node, $name);
};
my $boot = boot_time($node);
my ($rc, $out, $err);

# in a session
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
chomp $pid;
system("prlimit --pid=$pid --fsize=$size:") == 0 or BAIL_OUT('prlimit');
$session->query($fit->('second'));
like($session->{stderr}, qr/ERROR:  could not extend file .*: File too large\nHINT:  Check free disk space/, 'no room: the call says why');
$nothing_half->('no room');
is($session->query(q{SELECT count(ag_predict('first', s)) FROM small s}), '300', 'the session goes on, and predicts');
system("prlimit --pid=$pid --fsize=unlimited:");
is($session->query($fit->('second')), 'second', 'with room again the next fit works');
$session->quit;
is($node->safe_psql('postgres', q{SELECT ag_drop('second')}), '1', 'and can be dropped');

# in temporary files, which hold what the trainer sends until it is stored
($rc, $out, $err) = $node->psql('postgres', q{SET work_mem = '64kB'; SET temp_file_limit = '100kB';
	SELECT ag_fit('big', 'y', '{"name": "large", "verbosity": 0, "hyperparameters": {"KNN": {}}}')});
like($err, $node->safe_psql('postgres', 'SHOW server_version_num') >= 180000 ? qr/ERROR:  temporary file size exceeds "temp_file_limit" \(100kB\)/ : qr/ERROR:  temporary file size exceeds temp_file_limit \(100kB\)/, 'no room for temporary files: the call says why');
$nothing_half->('no room for temporary files');

# in a job: its worker gets what the postmaster has
$size = $node->safe_psql('postgres', q{SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'ag_member_part'});
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
system("prlimit --pid=$postmaster --fsize=$size:") == 0 or BAIL_OUT('prlimit');
my $job = $node->safe_psql('postgres', $fit->('third') =~ s/ag_fit/ag_fit_async/r);
is($node->safe_psql('postgres', "SELECT ag_wait($job, 30)"), 'failed', 'no room: a job fails');
like($node->safe_psql('postgres', "SELECT message FROM ag_jobs WHERE id = $job"), qr/^could not extend file .*: File too large/, 'and says why');
$nothing_half->('no room for a job');
system("prlimit --pid=$postmaster --fsize=unlimited:");
$job = $node->safe_psql('postgres', $fit->('third') =~ s/ag_fit/ag_fit_async/r);
is($node->safe_psql('postgres', "SELECT ag_wait($job, 30)"), 'succeeded', 'with room again the next job works');
is($node->safe_psql('postgres', q{SELECT count(ag_predict('third', s)) FROM small s}), '300', 'and its model');
is(boot_time($node), $boot, 'the server never restarted');

# No room in /dev/shm, where the memory that a fit shares with its trainer is now.
$node->append_conf('postgresql.conf', "dynamic_shared_memory_type = posix\n");
$node->restart;
$session = $node->background_psql('postgres', on_error_stop => 0);
$pid = $session->query_safe(q{SELECT pg_backend_pid()});
chomp $pid;
$session->query_safe(q{SELECT count(ag_predict('third', s)) FROM small s});
system("prlimit --pid=$pid --fsize=65536:") == 0 or BAIL_OUT('prlimit');
$session->query($fit->('fourth'));
like($session->{stderr}, qr/ERROR:  could not resize shared memory segment .* to \d+ bytes: File too large/, 'no shared memory: the call says why');
nothing_left($node, 'no shared memory');
is($session->query(q{SELECT count(ag_predict('third', s)) FROM small s}), '300', 'no shared memory: the session goes on');
system("prlimit --pid=$pid --fsize=unlimited:");
is($session->query($fit->('fourth')), 'fourth', 'with shared memory again the next fit works');
$session->quit;

$node->stop;
done_testing();
