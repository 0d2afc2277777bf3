# Where there is little: 64 MB in /dev/shm, as in many a container, and a control group of 2 GB. Fits work or say why not, and nobody else is harmed.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('limits');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nmax_worker_processes = 12\ndynamic_shared_memory_type = posix\nag_pg.max_fits = 4\n");
sub quick { my ($name, $more) = @_; return "SELECT ag_fit('small', 'y', '" . quick_options(qq{"name": "$name"} . ($more // '')) . "')"; }

# Starts and stops the server by hand, so that it can be started inside something.
sub server { my ($how, @inside) = @_; return system(@inside, 'pg_ctl', '-s', '-w', '-D', $node->data_dir, '-l', $node->logfile, $how) == 0; }
sub with_server
{
	my ($tests, @inside) = @_;
	server('start', @inside) or BAIL_OUT('the server did not start');
	my $ok = eval { $tests->(); 1 };
	my $why = $@;
	server('stop') or diag('the server did not stop');
	die $why unless $ok;
	return;
}

sub small_shared_memory
{
	make_data($node);
	is($node->safe_psql('postgres', q{CREATE TABLE room (line text); COPY room FROM PROGRAM 'df -k /dev/shm | tail -1'; SELECT line ~ ' 65536 ' FROM room}), 't', 'the server has 64 MB');
	my @fits = map { start_fit($node, quick("at_once_$_")) } 1 .. 4;
	end_fit($_) for @fits;
	is(scalar(grep { $_->{out} =~ /^at_once_\d$/ } @fits), 4, 'four fits at once work') or diag(map { $_->{err} } @fits);
	my $jobs = join ' ', map { $node->safe_psql('postgres', quick("job_$_") =~ s/ag_fit/ag_fit_async/r) } 1 .. 3;
	is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT ag_wait(id, 60), ' ') FROM ag_jobs}), 'succeeded', 'so do jobs');
	is($node->safe_psql('postgres', q{SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		SELECT count(ag_predict('at_once_1', small)) FROM small}), '300', 'and predictions by parallel workers');
	my $boot = boot_time($node);

	$node->safe_psql('postgres', q{COPY room FROM PROGRAM 'head -c 70000000 /dev/zero 2>/dev/null >/dev/shm/filled 2>&1 || true'});
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query(quick('full'));
	like($session->{stderr}, qr/ERROR:  could not resize shared memory segment .* to \d+ bytes: No space left on device/, 'when it is full the call says so');
	my $job = $node->safe_psql('postgres', quick('full_job') =~ s/ag_fit/ag_fit_async/r);
	like($node->safe_psql('postgres', "SELECT ag_wait($job, 60)"), qr/^(succeeded|failed)$/, 'a job, which needs none, ends');
	nothing_left($node, 'no shared memory');
	$node->safe_psql('postgres', q{COPY room FROM PROGRAM 'rm /dev/shm/filled'});
	is($session->query(quick('room_again')), 'room_again', 'with room again the same session fits');
	$session->quit;
	is(boot_time($node), $boot, 'the server never restarted');
	return;
}

SKIP:
{
	# A namespace of our own, in which we may mount; the user stays who he is.
	my @inside = ('unshare', '--user', '--mount', '--map-current-user', '--keep-caps');
	my $mount = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"';
	skip 'no /dev/shm can be mounted here (unshare --user --mount)', 9 unless system(join(' ', @inside) . " sh -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm' 2>/dev/null") == 0;
	with_server(\&small_shared_memory, @inside, 'sh', '-c', $mount, 'sh');
}

# ---- memory

my $group = ($ENV{AG_CGROUP} // '') . '/limited';
sub put_limit
{
	my ($bytes) = @_;
	my ($file) = grep { -e $_ } "$group/memory.max", "$group/memory.limit_in_bytes" or return 0;
	open my $out, '>', $file or return 0;
	syswrite $out, $bytes or return 0;
	if (open my $swap, '>', "$group/memory.swap.max") { syswrite $swap, '0'; }
	return 1;
}

sub small_group
{
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS ag_pg; DROP TABLE IF EXISTS big, small');
	$node->safe_psql('postgres', 'DROP EXTENSION ag_pg CASCADE');
	make_data($node);
	my $boot = boot_time($node);
	my $bystander = start_fit($node, 'SELECT pg_sleep(300)');
	my $limit = $node->safe_psql('postgres', q{LOAD 'ag_pg'; SELECT pg_size_bytes(current_setting('ag_pg.memory_limit')) / 1048576});
	ok($limit > 1024 && $limit <= 2048 * 0.6, "fits may use 60 % of the group ($limit MB)");
	is($node->safe_psql('postgres', quick('usual')), 'usual', 'a fit works');

	# more rows than that: an error of ours, before the kernel has to act
	my $large = q{SELECT i AS y, repeat(md5(i::text), 1000) AS x FROM generate_series(1, 60000) i};
	my $err = '';
	$node->psql('postgres', qq{SELECT ag_fit('$large', 'y', '{"name": "large", "verbosity": 0}')}, stderr => \$err);
	like($err, qr/ERROR:  out of memory.*\nHINT:/s, 'more rows than they may use: an error with a hint');
	nothing_left($node, 'more rows than there is memory for');

	# beyond what the group has, because a superuser says that it has more: the kernel ends the trainer, and nobody else
	$node->safe_psql('postgres', q{LOAD 'ag_pg'; ALTER SYSTEM SET ag_pg.memory_limit = '64GB'});
	$node->reload;
	put_limit(700 << 20) or return;
	$node->psql('postgres', qq{SELECT ag_fit('$large', 'y', '{"name": "large", "verbosity": 0}')}, stderr => \$err);
	like($err, qr/ERROR:  .*ag_trainer was killed by signal 9\nHINT:  The system may have run out of memory/, 'more than the group has: the trainer is ended, and the call says so');
	nothing_left($node, 'a trainer that the kernel ended');
	ok(!is_gone($bystander->{pid}), 'another session goes on');
	is(boot_time($node), $boot, 'the server never restarted');
	is($node->safe_psql('postgres', quick('usual')), 'usual', 'the next fit works');
	kill 'KILL', $bystander->{pid};
	end_fit($bystander);
	return;
}

SKIP:
{
	skip 'no control group was lent to the tests (test/run_tap as root does)', 10 unless $ENV{AG_CGROUP} && mkdir($group) && put_limit(2 << 30);
	with_server(\&small_group, 'sh', '-c', 'echo $$ >"$0" && exec "$@"', "$group/cgroup.procs");
	rmdir $group;
}
done_testing();
