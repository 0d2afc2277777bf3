# Clocks that are put forward and back while fits run: what a fit promises, waits for and shows goes by a clock that nobody sets.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use POSIX ();

# The clock of the server and of all that it starts is the machine's and as many seconds as a file says.
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/clock.c", q~
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset; /* of the wall clock, and of the one that only goes forward */

__attribute__((constructor)) static void
begin(void)
{
	int fd = open(OFFSET_FILE, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		offset = at;
	close(fd);
}

static int64_t
seconds(clockid_t clock)
{
	return offset == NULL ? 0 : clock == CLOCK_REALTIME ? offset[0] : clock == CLOCK_MONOTONIC ? offset[1] : 0;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int) syscall(SYS_clock_gettime, clock, now);

	if (rc == 0)
		now->tv_sec += seconds(clock);
	return rc;
}

int
gettimeofday(struct timeval *now, void *zone)
{
	struct timespec exact;

	(void) zone;
	clock_gettime(CLOCK_REALTIME, &exact);
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}
~);
sub put_clock
{
	my ($seconds, $forward) = @_;
	open my $file, '+<', "$dir/offset" or die $!;
	syswrite $file, pack('qq', $seconds, $forward // 0);
	close $file;
	return;
}
append_to_file("$dir/offset", pack('qq', 0, 0));
system('cc', '-shared', '-fPIC', '-O1', "-DOFFSET_FILE=\"$dir/offset\"", '-o', "$dir/clock.so", "$dir/clock.c") == 0
  or plan(skip_all => 'no C compiler');

my $node = PostgreSQL::Test::Cluster->new('clock');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\n");
{
	local $ENV{LD_PRELOAD} = "$dir/clock.so";
	$node->start;
}
my $day = 86400;
sub clock_off { return $node->safe_psql('postgres', 'SELECT round(extract(epoch FROM clock_timestamp()))') - time; }
put_clock(-$day);
cmp_ok(abs(clock_off() + $day), '<', 60, 'the clock of the server can be put');
put_clock(0);
make_data($node);

# The machine's own seconds that a fit takes while the clock is put about.
sub fit_with_jumps
{
	my ($sql, @jumps) = @_;
	my $began = (POSIX::times())[0];
	my $fit = start_fit($node, $sql);
	for my $jump (@jumps)
	{
		sleep 0.6;
		put_clock($jump);
	}
	end_fit($fit);
	put_clock(0);
	return (((POSIX::times())[0] - $began) / POSIX::sysconf(POSIX::_SC_CLK_TCK()), $fit);
}

# trained to its limit, not a second more, and no less
for my $case ([ 'forward', 40 * $day, 41 * $day ], [ 'back and forward', -40 * $day, 3600 ])
{
	my ($name, @jumps) = @$case;
	my ($took, $fit) = fit_with_jumps(slow_fit('"time_limit": 3') =~ s/"time_limit": 300, //r, @jumps);
	like($fit->{out}, qr/big_y/, "$name: the fit works") or diag($fit->{err});
	cmp_ok($took, '>', 1.5, "$name: and uses its time");
	cmp_ok($took, '<', 5, "$name: and keeps to its limit");
}

# while the executor has the say, which sleeps by the clock on the wall
for my $case ([ 'back', -3600, -7200 ], [ 'forward', 3600, 7200 ])
{
	my ($name, @jumps) = @$case;
	my $never = q{'SELECT a, y FROM big, (SELECT count(*) FROM generate_series(1, 3000000000)) AS s OFFSET 0'};
	my ($took, $fit) = fit_with_jumps(qq{SELECT ag_fit($never, 'y', '{"name": "never", "time_limit": 2}')}, @jumps);
	like($fit->{err}, qr/the time limit of 2 s passed while the rows were being read/, "$name, while rows are read: the limit holds");
	cmp_ok($took, '<', 4, "$name, while rows are read: in time");
}

# a fit that waits for its turn
$node->safe_psql('postgres', "LOAD 'ag_pg'; ALTER SYSTEM SET ag_pg.max_fits = 1");
$node->reload;
my $first = start_fit($node, slow_fit('"num_cpus": 1'));
wait_for_training($node);
my ($took, $late) = fit_with_jumps(q{SELECT ag_fit('small', 'y', '} . quick_options('"name": "late", "num_cpus": 1, "time_limit": 2') . q{')}, -3600, 3600);
like($late->{err}, qr/the time limit of 2 s passed while waiting/, 'a fit that waits for its turn gives up');
cmp_ok($took, '<', 4, 'in time');

# what others see of it, after the clock was put back and forward
for my $jump (-3600, 3600)
{
	put_clock($jump);
	is($node->safe_psql('postgres', 'SELECT elapsed BETWEEN 0 AND 300, remaining BETWEEN 0 AND 300 FROM ag_jobs WHERE pid IS NOT NULL'), 't|t', "a clock off by $jump s: how long it has run, and what remains, is right");
}
put_clock(0);
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT ag_fit%' AND backend_type = 'client backend'});
end_fit($first);

# jobs: who runs or waits is neither retired nor failed, and ends as it should
sub state_of { my ($id) = @_; return $node->safe_psql('postgres', "SELECT state FROM ag_jobs WHERE id = $id"); }
$node->safe_psql('postgres', q{LOAD 'ag_pg'; ALTER SYSTEM SET ag_pg.max_jobs = 1; ALTER SYSTEM SET ag_pg.max_fits = 4});
$node->reload;
my $done = $node->safe_psql('postgres', q{SELECT ag_fit_async('small', 'y', '} . quick_options('"name": "done"') . q{')});
is($node->safe_psql('postgres', "SELECT ag_wait($done, 30)"), 'succeeded', 'a job before');
my $job = $node->safe_psql('postgres', slow_fit('"name": "jumper", "time_limit": 8') =~ s/"time_limit": 300, //r =~ s/ag_fit/ag_fit_async/r);
my $next = $node->safe_psql('postgres', q{SELECT ag_fit_async('small', 'y', '} . quick_options('"name": "next"') . q{')});
ok(wait_until(20, sub { state_of($job) eq 'running' }), 'a job runs, another waits');
put_clock(40 * $day);
sleep 0.5;
is(state_of($job) . ' ' . state_of($next), 'running queued', 'forty days later they still do');
my $times = "SELECT elapsed BETWEEN 0 AND 60, coalesce(remaining, 0) BETWEEN 0 AND 60, started_at > clock_timestamp() FROM ag_jobs WHERE id = $job";
is($node->safe_psql('postgres', $times), 't|t|f', 'it has run for as long as it has, and what remains is right');
put_clock(-40 * $day);
sleep 0.5;
is(state_of($job) . ' ' . state_of($next), 'running queued', 'and eighty days before that');
is($node->safe_psql('postgres', $times), 't|t|t', 'which is before it started, and makes no difference');
is($node->safe_psql('postgres', "SELECT ag_wait($job, 0.5)"), 'running', 'ag_wait comes back');
is($node->safe_psql('postgres', "SELECT ag_wait($job, 30) || ' ' || ag_wait($next, 30)"), 'succeeded succeeded', 'both succeed');
is($node->safe_psql('postgres', "SELECT string_agg(state || ' ' || (elapsed >= 0)::text, ', ' ORDER BY id) FROM ag_jobs"),
	'succeeded true, succeeded true, succeeded true', 'and none is forgotten');
is($node->safe_psql('postgres', "SELECT elapsed BETWEEN 1 AND 60, ended_at < started_at FROM ag_jobs WHERE id = $job"), 't|t', 'how long it ran is not what the clock on the wall makes of it');

# how long jobs are kept: a clock that is put forward makes none old
sub run_one
{
	my ($name) = @_;
	my $id = $node->safe_psql('postgres', q{SELECT ag_fit_async('small', 'y', '} . quick_options(qq{"name": "$name"}) . q{')});
	is($node->safe_psql('postgres', "SELECT ag_wait($id, 30)"), 'succeeded', "$name: a job");
	return $id;
}
sub models_of_jobs { return $node->safe_psql('postgres', q{SELECT string_agg(model, ' ' ORDER BY id) FROM ag_jobs}); }
put_clock(0);
run_one('before');
put_clock(40 * $day);
run_one('after');
is(models_of_jobs(), 'done jumper next before after', 'with the clock forty days ahead, jobs of just now are kept');
put_clock(80 * $day, 40 * $day);
run_one('later');
is(models_of_jobs(), 'later', 'after forty days they are old');
put_clock(0);
$job = $node->safe_psql('postgres', slow_fit('"name": "stopped"') =~ s/ag_fit/ag_fit_async/r);
ok(wait_until(20, sub { state_of($job) eq 'running' }), 'another runs');
put_clock(-$day);
my $began = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
is($node->safe_psql('postgres', "SELECT ag_cancel($job)"), 't', 'ag_cancel');
cmp_ok(Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) - $began, '<', 1.5, 'is as quick as ever');
put_clock(0);
nothing_left($node, 'clocks');

# models that sessions share: one that nobody uses makes room, whatever the clock was when it was used last
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'ag_pg'\nag_pg.shared_model_cache_size = '64MB'\n");
$node->stop;
{
	local $ENV{LD_PRELOAD} = "$dir/clock.so";
	$node->start;
}
$node->safe_psql('postgres', qq{SELECT ag_fit('big', 'y', '{"name": "$_", "hyperparameters": {"XT": {"n_estimators": 8}}, "verbosity": 0}')}) for 'first', 'second';
my $bytes = $node->safe_psql('postgres', q{SET client_min_messages = error; DO $$ BEGIN PERFORM ag_prewarm('first'); END $$; SELECT shared_bytes FROM ag_stats});
$node->append_conf('postgresql.conf', 'ag_pg.shared_model_cache_size = ' . int($bytes * 1.5 / 1024) . "kB\n");
$node->reload;
put_clock($day);
my $holder = $node->background_psql('postgres');
$holder->query_safe(q{SELECT count(ag_predict('first', s)) FROM big s});
put_clock(0, 10);
$node->safe_psql('postgres', q{SELECT ag_prewarm('second')});
is($holder->query_safe(q{SELECT count(ag_predict('done', s)) FROM small s}), '300', 'a session lets go of a model that it has not used of late');
is($node->safe_psql('postgres', q{SET client_min_messages = error; DO $$ BEGIN PERFORM ag_prewarm('second'); END $$; SELECT count(ag_predict('second', s)) FROM big s; SELECT shared_hits > 0 OR shared_models > 0, shared_bytes < } . $bytes * 2 . q{ FROM ag_stats}), "20000\nt|t", 'and another one takes its room');
is($node->safe_psql('postgres', q{SELECT ag_stats_reset(); SELECT count(ag_predict('second', s)) FROM big s; SELECT shared_hits FROM ag_stats}), "\n20000\n1", 'for all');
$holder->quit;
put_clock(0);

# what takes long says so every ten seconds: here each look is eleven seconds after the one before. It would take minutes, whatever the machine
my $long = start_fit($node, q{SET statement_timeout = 30000; SELECT count(*) FROM ag_feature_importance('done', 'SELECT x, y FROM small, generate_series(1, 3000)', 500000, 1000)});
my $looks = 0;
ok(wait_until(25, sub { put_clock(0, 11 * ++$looks); eval { $long->{run}->pump_nb }; return $long->{err} =~ /NOTICE:  00000: ag_feature_importance: \d+ of 1000 shuffles after [1-9]\d+ s/ }),
	'a call that takes long says how far it is') or diag($long->{err});
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%ag_feature_importance%' AND pid <> pg_backend_pid()});
end_fit($long);
like($long->{err}, qr/canceling statement due to user request/, 'and can be stopped');
$node->stop;
done_testing();
