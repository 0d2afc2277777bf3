# Jobs: they start at commit, outlive their session, wait for their turn, are stopped at once, and what a crash or restart leaves of them is
# set right.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('jobs');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nrestart_after_crash = on\nmax_worker_processes = 12\nag_pg.num_cpus = 2\n");
$node->start;
make_data($node);

sub submit
{
	my ($sql, $database) = @_;
	$sql =~ s/ag_fit\(/ag_fit_async(/;
	return $node->safe_psql($database // 'postgres', $sql);
}
sub quick { my ($name) = @_; return "SELECT ag_fit_async('small', 'y', '" . quick_options("\"name\": \"$name\"") . "')"; }
sub look { my ($id, $what, $database) = @_; return $node->safe_psql($database // 'postgres', "SELECT $what FROM ag_jobs WHERE id = $id"); }
sub state_is { my ($id, $state, $name) = @_; is(look($id, 'state'), $state, $name); return; }
sub runs { my ($id) = @_; return wait_until(20, sub { look($id, q{state = 'running' AND phase LIKE 'fitting%'}) eq 't' }); }
sub workers
{
	return split /\n/, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'ag_pg job' ORDER BY 1});
}
sub nothing_runs
{
	my ($name, @pids) = @_;
	ok(wait_until(3, sub {
		!workers() && !supervisors($node) && !(grep { !is_gone($_) } @pids)
		  && $node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}) eq '0'
	}), "$name: nothing left behind");
	return;
}

# at commit, and not before
my $session = $node->background_psql('postgres');
my $job = $session->query_safe('BEGIN; ' . quick('at_commit') =~ s/;?$/;/r);
chomp $job;
sleep 0.5;
is($node->safe_psql('postgres', 'SELECT count(*) FROM ag_jobs'), '0', 'a job is not seen before it is committed');
is(scalar(workers()), 0, 'and does not run');
$session->query_safe('COMMIT');
ok(wait_until(20, sub { look($job, 'state') eq 'succeeded' }), 'it runs at commit');
$session->quit;
like($node->safe_psql('postgres', "SELECT ag_predict('at_commit', s) FROM small s LIMIT 1"), qr/^\d/, 'its model predicts');
nothing_runs('a job that succeeded');

# it outlives the session; others see how far it is; no transaction is open while it trains
$job = submit(slow_fit());
ok(runs($job), 'the session is gone, the job runs');
is(look($job, q{model || ' ' || (elapsed > 0) || ' ' || (started_at IS NOT NULL) || ' ' || (percent BETWEEN 0 AND 100) || ' ' || (remaining BETWEEN 1 AND 300)}), 'big_y true true true true', 'others see it run');
like($node->safe_psql('postgres', "SELECT ag_job_log($job)"), qr/^\[\d+\.\d s\] .*20000 rows and 3 columns/m, 'and what it says');
my ($worker) = workers();
is($node->safe_psql('postgres', "SELECT xact_start IS NULL AND backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $worker"), 't', 'it holds no transaction open');
is(scalar(supervisors($node)), 0, 'and needs no supervisor');
my ($trainer) = trainers($worker);
ok($trainer, 'its worker watches over the trainer itself');
my $began = time;
is($node->safe_psql('postgres', "SELECT ag_wait($job, 1.5)"), 'running', 'ag_wait gives up in time');
cmp_ok(time - $began, '<', 3, 'ag_wait: in time');
$began = time;
is($node->safe_psql('postgres', "SELECT ag_cancel($job)"), 't', 'ag_cancel');
cmp_ok(time - $began, '<', 1, 'ag_cancel: within a second');
is(look($job, q{state || ' ' || message}), 'cancelled cancelled', 'ag_cancel: seen');
nothing_runs('ag_cancel', $worker, $trainer);
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'big_y'}), '0', 'ag_cancel: no half predictor');

# while it reads
$job = submit(q{SELECT ag_fit('SELECT a, y FROM big, (SELECT pg_sleep(60)) AS s OFFSET 0', 'y', '{"name": "never"}')});
ok(wait_until(10, sub { look($job, 'state') eq 'running' }), 'a job that reads slowly');
sleep 0.3;
$began = time;
is($node->safe_psql('postgres', "SELECT ag_cancel($job)"), 't', 'ag_cancel while it reads');
cmp_ok(time - $began, '<', 1, 'ag_cancel while it reads: within a second');
state_is($job, 'cancelled', 'ag_cancel while it reads: seen');
$job = submit(q{SELECT ag_fit('SELECT a, y FROM big, (SELECT pg_sleep(60)) AS s OFFSET 0', 'y', '{"name": "never", "time_limit": 1}')});
is($node->safe_psql('postgres', "SELECT ag_wait($job, 20)"), 'failed', 'its time limit counts while it reads');
like(look($job, 'message'), qr/time limit of 1 s passed while the rows were being read/, 'and it says so');
nothing_runs('jobs that read');

# by other means
for my $case ([ 'pg_cancel_backend', sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") }, 'cancelled', qr/cancelled/ ],
	[ 'pg_terminate_backend', sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") }, 'failed', qr/ended with its worker/ ],
	[ 'kill -9 of the trainer', sub { kill 'KILL', $_[1] }, 'failed', qr/ag_trainer was killed by signal 9/ ])
{
	my ($name, $stop, $state, $message) = @$case;
	$job = submit(slow_fit());
	runs($job);
	($worker) = workers();
	($trainer) = trainers($worker);
	$stop->($worker, $trainer);
	ok(wait_until(2, sub { look($job, 'state') eq $state }), "$name: $state");
	like(look($job, 'message'), $message, "$name: says why");
	ok(wait_until(5, sub { $node->safe_psql('postgres', "SELECT state FROM ag_job WHERE id = $job") eq $state }), "$name: written down");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM ag_job_order'), '0', "$name: its order is gone");
	nothing_runs($name, $worker, $trainer);
}

# a queue
$node->append_conf('postgresql.conf', "ag_pg.max_jobs = 1\n");
$node->reload;
my @jobs = map { submit(slow_fit("\"num_cpus\": 1, \"name\": \"slow_$_\"")) } 1 .. 3;
ok(runs($jobs[0]), 'max_jobs: the first runs');
sleep 0.5;
is($node->safe_psql('postgres', q{SELECT string_agg(state, ' ' ORDER BY id) FROM ag_jobs WHERE model LIKE 'slow%'}), 'running queued queued', 'max_jobs: the others wait');
cmp_ok(scalar(workers()), '<=', 2, 'max_jobs: one worker runs, one waits');
is($node->safe_psql('postgres', "SELECT ag_wait($jobs[2], 0.2)"), 'queued', 'max_jobs: ag_wait says queued');
$node->safe_psql('postgres', "SELECT ag_cancel($jobs[1])");
is(look($jobs[1], q{state || ' ' || message}), 'cancelled cancelled before it started', 'max_jobs: one that waits is cancelled');
$session = $node->background_psql('postgres');
$session->query_safe("BEGIN; SELECT ag_cancel($jobs[2]);");
$node->safe_psql('postgres', "SELECT ag_cancel($jobs[0])");
sleep 0.5;
state_is($jobs[2], 'queued', 'max_jobs: one whose cancel is not committed does not start');
$session->query_safe('ROLLBACK');
ok(runs($jobs[2]), 'max_jobs: when that is rolled back, it does');
$session->quit;
# raised while one waits
my $other = submit(quick('raised'));
$node->append_conf('postgresql.conf', "ag_pg.max_jobs = 3\n");
$node->reload;
is($node->safe_psql('postgres', "SELECT ag_wait($other, 20)"), 'succeeded', 'max_jobs raised: the next starts');
state_is($jobs[2], 'running', 'max_jobs raised: beside the other');
$node->safe_psql('postgres', "SELECT ag_cancel($jobs[2])");

# many at once, from many sessions
my @submitters = map { start_fit($node, quick("many_$_")) } 1 .. 12;
end_fit($_) for @submitters;
@jobs = map { $_->{out} =~ /(\d+)/ ? $1 : () } @submitters;
is(scalar(@jobs), 12, 'twelve are submitted at once');
is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT ag_wait(id, 60), ' ') FROM ag_jobs WHERE model LIKE 'many%'"), 'succeeded', 'all of them succeed');
@submitters = map { start_fit($node, quick('same')) } 1 .. 6;
end_fit($_) for @submitters;
$node->safe_psql('postgres', q{SELECT ag_wait(id, 60) FROM ag_jobs WHERE model = 'same'});
is($node->safe_psql('postgres', q{SELECT string_agg(version::text, ' ' ORDER BY version) FROM ag_jobs WHERE model = 'same'}), '1 2 3 4 5 6', 'six of one name give six versions');
nothing_runs('many jobs');

# behind a pooler every transaction may meet another session, which is wiped between two clients
my @pool = map { $node->background_psql('postgres') } 1 .. 2;
$pool[0]->query_safe('BEGIN');
$job = $pool[0]->query_safe(quick('pooled') =~ s/;?$/;/r);
chomp $job;
$pool[0]->query_safe('COMMIT');
$pool[0]->query_safe('DISCARD ALL');
is($pool[1]->query_safe("SELECT ag_wait($job, 20);"), 'succeeded', 'a pooler: another session waits');
is($pool[1]->query_safe(q{SELECT count(ag_predict('pooled', s)) FROM small s;}), '300', 'a pooler: and predicts');
$pool[1]->query_safe('DISCARD ALL');
is($pool[1]->query_safe(q{SELECT count(ag_predict('pooled', s)) FROM small s;}), '300', 'a pooler: also after DISCARD ALL');
$job = $pool[0]->query_safe(slow_fit('"name": "pooled"') =~ s/ag_fit/ag_fit_async/r =~ s/;?$/;/r);
chomp $job;
$pool[0]->query_safe('DISCARD ALL');
$pool[0]->quit;
ok(runs($job), 'a pooler: whose session has gone runs');
$began = time;
is($pool[1]->query_safe("SELECT ag_cancel($job);"), 't', 'a pooler: another session cancels');
cmp_ok(time - $began, '<', 1, 'a pooler: within a second');
$pool[1]->quit;
nothing_runs('a pooler');

# the same through PgBouncer, where there is one: it hands each transaction to any of two sessions
SKIP:
{
	my ($bouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
	skip 'no pgbouncer', 9 unless $bouncer;
	my $home = PostgreSQL::Test::Utils::tempdir_short();
	my $user = $node->safe_psql('postgres', 'SELECT current_user');
	append_to_file("$home/ini", "[databases]\npostgres = host=" . $node->host . ' port=' . $node->port . " user=$user\n[pgbouncer]\nunix_socket_dir = $home\nlisten_port = 6432\nauth_type = any\n"
		  . "pool_mode = transaction\ndefault_pool_size = 2\nserver_reset_query = DISCARD ALL\nserver_reset_query_always = 1\n");
	my $said = '';
	my $run = IPC::Run::start([ $bouncer, "$home/ini" ], '<', \undef, '>&', \$said);
	my $through = sub {
		my ($sql) = @_;
		my ($out, $err) = ('', '');
		IPC::Run::run([ 'psql', '-XAtq', '-h', $home, '-p', 6432, '-U', $user, '-d', 'postgres', '-c', $sql ], '>', \$out, '2>', \$err);
		chomp $out;
		return $err eq '' ? $out : $err;
	};
	ok(wait_until(10, sub { $through->('SELECT 1') eq '1' }), 'PgBouncer is there') or diag($said);
	my $id = $through->(quick('bounced'));
	is($through->("SELECT ag_wait($id, 20)"), 'succeeded', 'PgBouncer: a job, and who waits for it');
	is($through->(q{SELECT count(ag_predict('bounced', s)) FROM small s}), '300', "PgBouncer: predictions, time $_") for 1 .. 2;
	like($through->(quick('bounced') =~ s/ag_fit_async/ag_fit/r =~ s/"verbosity": 1/"verbosity": 0/r), qr/^bounced$/, 'PgBouncer: a fit in a session');
	$id = $through->(slow_fit('"name": "bounced"') =~ s/ag_fit/ag_fit_async/r);
	ok(runs($id), 'PgBouncer: a job whose client has gone runs');
	my $at = time;
	is($through->("SELECT ag_cancel($id)") . (time - $at < 1 ? ' at once' : ' late'), 't at once', 'PgBouncer: and is stopped');
	$run->kill_kill;
	ok(wait_until(5, sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%psql%' AND backend_type = 'client backend' AND state = 'idle'}) eq '0' }),
		'PgBouncer: its sessions are gone');
	nothing_runs('PgBouncer');
}

# NOTIFY
$session = $node->background_psql('postgres');
$session->query_safe('LISTEN ag_job');
$job = submit(quick('notify'));
$node->safe_psql('postgres', "SELECT ag_wait($job)");
sleep 0.2;
like($session->query('SELECT 1'), qr/"ag_job" with payload "$job"/, 'NOTIFY ag_job tells the id');
$node->safe_psql('postgres', "SELECT ag_fit('small', 'y', '" . quick_options('"name": "silent"') . "')");
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_jobs WHERE model = 'silent'}), '0', 'a fit in a session is no job');
$node->safe_psql('postgres', "SET ag_pg.notify = on; SELECT ag_fit('small', 'y', '" . quick_options('"name": "told"') . "')");
$job = $node->safe_psql('postgres', q{SELECT id FROM ag_jobs WHERE model = 'told' AND state = 'succeeded' AND version = 1 AND elapsed > 0});
like($session->query('SELECT 1'), qr/"ag_job" with payload "$job"/, 'with ag_pg.notify it tells its id too');
$session->quit;

# whoever locks the record stops neither training nor the trainer's watch
$job = submit(slow_fit('"time_limit": 4') =~ s/"time_limit": 300, //r);
runs($job);
$session = $node->background_psql('postgres');
$session->query_safe('BEGIN; LOCK TABLE ag_job');
($worker) = workers();
($trainer) = trainers($worker);
ok(wait_until(10, sub { is_gone($trainer) }), 'with its record locked a job trains to the end');
$session->query_safe('COMMIT');
$session->quit;
is($node->safe_psql('postgres', "SELECT ag_wait($job, 10)"), 'succeeded', 'and stores when the lock is gone');

# DROP EXTENSION, DROP DATABASE
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION ag_pg; CREATE TABLE big AS SELECT i AS a, i % 50 + sin(i / 1000.0) AS y FROM generate_series(1, 20000) AS i');
$job = submit(slow_fit(), 'other');
wait_until(20, sub { look($job, 'phase', 'other') =~ /fitting/ });
($worker) = workers();
($trainer) = trainers($worker);
$began = time;
$node->safe_psql('other', 'DROP EXTENSION ag_pg CASCADE');
cmp_ok(time - $began, '<', 2, 'DROP EXTENSION during a job');
ok(wait_until(3, sub { is_gone($worker) && is_gone($trainer) }), 'DROP EXTENSION ends it');
$node->safe_psql('other', 'CREATE EXTENSION ag_pg');
$job = submit(slow_fit(), 'other');
wait_until(20, sub { look($job, 'phase', 'other') =~ /fitting/ });
($worker) = workers();
($trainer) = trainers($worker);
my ($rc, $out, $err) = $node->psql('postgres', 'DROP DATABASE other');
like($err, qr/database "other" is being accessed by other users/, 'DROP DATABASE during a job is refused');
$began = time;
$node->safe_psql('postgres', 'DROP DATABASE other WITH (FORCE)');
cmp_ok(time - $began, '<', 2, 'DROP DATABASE WITH (FORCE) ends it');
ok(wait_until(3, sub { is_gone($worker) && is_gone($trainer) }), 'DROP DATABASE WITH (FORCE): nothing left');

# a crash: the one that ran has failed, the one that waited starts when somebody looks
$node->append_conf('postgresql.conf', "ag_pg.max_jobs = 1\n");
$node->reload;
for my $how ('kill -9 of the worker', 'stop -m fast', 'stop -m immediate')
{
	my ($first, $second) = (submit(slow_fit()), submit(quick('waited')));
	runs($first);
	my ($pid) = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'ag_pg job' AND query LIKE 'job%'");
	($trainer) = trainers($pid);
	if ($how =~ /^kill/)
	{
		kill 'KILL', $pid;
		wait_until(5, sub { is_gone($pid) });
	}
	else
	{
		$node->stop($how =~ /(\w+)$/);
		$node->start;
	}
	ok(wait_until(5, sub { is_gone($trainer) }), "$how: no trainer lives on");
	ok($node->poll_query_until('postgres', 'SELECT true'), "$how: the server is back");
	is(look($first, q{state || ': ' || message}), 'failed: the job ended with its worker: that was terminated, or the server stopped', "$how: who ran has failed");
	is($node->safe_psql('postgres', "SELECT ag_wait($second, 20)"), 'succeeded', "$how: who waited is started");
	is($node->safe_psql('postgres', "SELECT state FROM ag_job WHERE id = $first"), 'failed', "$how: it is written down");
	nothing_runs($how, $pid);
}

# a job that is stored in one database never runs in a copy of it
my $waiting = do {
	my ($first, $second) = (submit(slow_fit()), submit(quick('copied')));
	runs($first);
	$node->stop('fast');
	$node->start;
	$second;
};
$node->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres');
is(look($waiting, q{state || ': ' || message}, 'copy'), 'failed: the job came with a copy of its database, and is left to where it was submitted; submit it again to have it run here', 'a copied job is none');
ok(wait_until(10, sub { look($waiting, 'state', 'copy') eq 'failed' && $node->safe_psql('copy', "SELECT state FROM ag_job WHERE id = $waiting") eq 'failed' }),
	'a copied job: written down');
is($node->safe_psql('copy', q{SELECT count(*) FROM ag_predictor WHERE name = 'copied'}), '0', 'a copied job does not run');
my $fresh = submit(quick('fresh'), 'copy');
is($node->safe_psql('copy', "SELECT ag_wait($fresh, 20)"), 'succeeded', 'the copy has jobs of its own');
is($node->safe_psql('postgres', "SELECT ag_wait($waiting, 20)"), 'succeeded', 'the original runs where it was submitted');

# no worker to be had: it waits, and starts when somebody looks and one is free
$node->append_conf('postgresql.conf', "max_worker_processes = 2\nmax_logical_replication_workers = 0\nmax_parallel_workers = 0\nag_pg.max_jobs = 4\n");
$node->restart;
my @fits = map { start_fit($node, slow_fit("\"name\": \"holds_$_\"")) } 1 .. 2;
wait_until(20, sub { supervisors($node) == 2 });
$job = submit(quick('no_worker'));
sleep 0.5;
state_is($job, 'queued', 'no worker free: it waits');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($_)") for supervisors($node);
end_fit($_) for @fits;
is($node->safe_psql('postgres', "SELECT ag_wait($job, 20)"), 'succeeded', 'a worker free: it starts');

# preloaded: what waited starts by itself
$node->append_conf('postgresql.conf', "max_worker_processes = 12\nshared_preload_libraries = 'ag_pg'\nag_pg.max_jobs = 1\n");
$node->restart;
for my $how ('restart', 'crash')
{
	my ($first, $second) = (submit(slow_fit()), submit(quick("by_itself_$how")));
	runs($first);
	my ($pid) = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'ag_pg job' AND query LIKE 'job%'");
	if ($how eq 'crash')
	{
		kill 'KILL', $pid;
		wait_until(5, sub { is_gone($pid) });
		$node->poll_query_until('postgres', 'SELECT true');
	}
	else
	{
		$node->restart;
	}
	ok($node->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM ag_predictor WHERE name = 'by_itself_$how'}), "preloaded, $how: who waited starts by itself");
	is($node->safe_psql('postgres', "SELECT state FROM ag_job WHERE id = $first"), 'failed', "preloaded, $how: who ran has failed");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ag_pg launcher'}), '1', 'the launcher sleeps');
$began = time;
$node->safe_psql('postgres', 'CREATE DATABASE more; DROP DATABASE more');
cmp_ok(time - $began, '<', 5, 'and stands in nobody\'s way');

# old jobs are forgotten
$node->safe_psql('postgres', q{UPDATE ag_job SET ended_at = ended_at - interval '31 days', ended_ns = ended_ns - 31 * 86400 * 1000000000::bigint WHERE id < } . $job);
$job = submit(quick('retention'));
$node->safe_psql('postgres', "SELECT ag_wait($job)");
is($node->safe_psql('postgres', "SELECT count(*) FROM ag_jobs WHERE ended_at < now() - interval '30 days'"), '0', 'ended jobs are kept for ag_pg.job_retention');

is(scalar(grep { /PANIC|TRAP|leak/ } split /\n/, slurp_file($node->logfile)), 0, 'nothing odd in the log');
$node->stop;
done_testing();
