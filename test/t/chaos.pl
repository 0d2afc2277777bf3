# Kills at random moments of fits, of sessions as of jobs: whatever process dies and however, afterwards nothing is left of the fit, nothing half
# is stored, and the next one works.
#
# AG_CHAOS_ROUNDS=500 is the long mode, AG_CHAOS_SEED=n repeats a run (as far as moments repeat).
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $rounds = $ENV{AG_CHAOS_ROUNDS} // 28;
my $seed = $ENV{AG_CHAOS_SEED} // int(time);
srand $seed;
note "seed $seed";

my $node = PostgreSQL::Test::Cluster->new('chaos');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nrestart_after_crash = on\nmax_worker_processes = 12\nag_pg.num_cpus = 2\nag_pg.shared_model_cache_size = 0\n");
$node->start;
make_data($node);
$node->safe_psql('postgres', 'CREATE TABLE wide AS SELECT i AS id, ' . join(', ', map { "random() AS x$_" } 1 .. 20) . ', random() AS y FROM generate_series(1, 20000) AS i');

my $n_killed = 0;
my $OPTIONS = '"hyperparameters": {"GBM": {"num_boost_round": 3000, "ag_args_fit": {"early_stop": null}}, "XT": {"n_estimators": 20}, "LR": {}}, "num_bag_folds": 2, "time_limit": 60';

sub quiet_psql { my ($sql) = @_; my ($rc, $out, $err) = $node->psql('postgres', $sql); return defined $out && $rc == 0 ? $out : undef; }
sub pids { my ($type) = @_; return split /\n/, quiet_psql("SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'") // ''; }
sub session_pid { return quiet_psql(q{SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT ag_fit(%' AND backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1}) || 0; }
sub is_up { return wait_until(30, sub { defined quiet_psql('SELECT 1') }); }

# Segments in /dev/shm (the control segment and the statistics' are always there), but for those that a process of another server has mapped.
sub segments
{
	my %theirs;
	my $ours = (split /\n/, eval { slurp_file($node->data_dir . '/postmaster.pid') } // '')[0] // 0;
	for my $stat (glob '/proc/[0-9]*/stat')
	{
		open my $file, '<', $stat or next;
		my ($pid, $parent) = (<$file> // '') =~ /^(\d+) \(.*\) \S (\d+)/ or next;
		next if $pid == $ours || $parent == $ours;
		open my $maps, '<', "/proc/$pid/maps" or next;
		/ (\/dev\/shm\/PostgreSQL\.\d+)/ and $theirs{$1} = 1 while <$maps>;
	}
	return scalar(grep { defined((stat $_)[4]) && (stat _)[4] == $> && !$theirs{$_} } glob '/dev/shm/PostgreSQL.*');
}

# Who can die, and how: [what, signal, whether a session's fit or a job's]. KILL of a server process restarts the cluster, as it always does.
my @deaths = (
	[ 'trainer', 'KILL' ], [ 'trainer', 'SEGV' ], [ 'trainer', 'TERM' ], [ 'supervisor', 'TERM' ], [ 'supervisor', 'KILL' ],
	[ 'session', 'TERM' ], [ 'session', 'INT' ], [ 'session', 'KILL' ], [ 'client', 'KILL' ],
	[ 'job', 'TERM' ], [ 'job', 'INT' ], [ 'job', 'KILL' ], [ 'job trainer', 'KILL' ], [ 'postmaster', 'fast' ], [ 'postmaster', 'immediate' ]);

# From 17 on the statistics' segment is made when the library is first used.
$node->safe_psql('postgres', "SELECT ag_fit('small', 'y', '" . quick_options('"name": "first"') . "')");
my $segments_before = segments();
my $is_as_before = sub {
	return !trainers_of_all() && defined(quiet_psql('SELECT 1')) && quiet_psql(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}) eq '0'
	  && !pids('ag_pg supervisor') && segments() <= $segments_before;
};
sub trainers_of_all { my $top = $node->{_pid}; return grep { descends($_, $top) } all_trainers(); }
sub all_trainers { return map { m{/proc/(\d+)/} && name_of($1) eq 'ag_trainer' ? $1 : () } glob '/proc/[0-9]*/stat'; }
sub name_of { my ($pid) = @_; open my $f, '<', "/proc/$pid/stat" or return ''; my $line = <$f> // ''; return $line =~ /^\d+ \((.*)\) [^ZX]/ ? $1 : ''; }
# An orphan's parent is init: it counts as ours when its binary is.
my %born;
sub descends { my ($pid) = @_; return $born{$pid} || (readlink("/proc/$pid/exe") // '') =~ m{^\Q$ENV{AG_PKGLIBDIR}\E/}; }
chomp($ENV{AG_PKGLIBDIR} = `$ENV{PG_CONFIG} --pkglibdir`);

for my $round (1 .. $rounds)
{
	my ($who, $how) = @{ $deaths[ $round <= @deaths ? $round - 1 : int rand @deaths ] };
	my $is_job = $who =~ /^job/;
	my $moment = 0.05 + rand 1.2;
	my $name = sprintf 'round %d: %s to the %s after %.2f s of a %s', $round, $how, $who, $moment, $is_job ? "job" : "session's fit";
	my $before = quiet_psql('SELECT count(*) FROM ag_predictor') // -1;
	my $fit;
	if ($is_job) { quiet_psql("SELECT ag_fit_async('wide', 'y', '{$OPTIONS}')"); }
	else { $fit = start_fit($node, "SELECT ag_fit('wide', 'y', '{$OPTIONS}')"); }
	sleep $moment;

	my @victims =
		$who eq 'trainer' ? trainers(pids('ag_pg supervisor'))
	  : $who eq 'job trainer' ? trainers(pids('ag_pg job'))
	  : $who eq 'supervisor' ? pids('ag_pg supervisor')
	  : $who eq 'job' ? pids('ag_pg job')
	  : $who eq 'session' ? grep { $_ } session_pid()
	  : $who eq 'client' ? ($fit->{pid})
	  : ();
	if ($who eq 'postmaster') { $node->stop($how); $node->start; }
	elsif (@victims) { $n_killed += kill $how, @victims; }
	end_fit($fit) if $fit;

	ok(is_up(), "$name: the server is there");
	quiet_psql(q{SELECT ag_cancel(id) FROM ag_jobs WHERE state IN ('queued', 'running') AND id IS NOT NULL});
	ok(wait_until(10, $is_as_before), "$name: nothing is left")
	  or diag(join "\n", 'trainers ' . join(' ', trainers_of_all()), 'supervisors ' . join(' ', pids('ag_pg supervisor')), 'segments ' . segments() . " of $segments_before",
		quiet_psql(q{SELECT * FROM pg_locks WHERE locktype = 'advisory'}));
	my $whole = quiet_psql(q{SELECT count(*) FILTER (WHERE best IS NULL OR parts < members) FROM (SELECT p.id,
		(SELECT name FROM ag_member m WHERE m.predictor = p.id AND m.name = p.best_model) AS best,
		(SELECT count(*) FROM ag_member m WHERE m.predictor = p.id AND m.can_infer AND m.inputs IS NULL) AS members,
		(SELECT count(DISTINCT member) FROM ag_member_part q WHERE q.predictor = p.id AND q.member > 0) AS parts FROM ag_predictor p) s});
	is($whole, '0', "$name: no half model");
	is(quiet_psql(q{SELECT count(*) FROM ag_jobs WHERE state IN ('queued', 'running')}), '0', "$name: no job that still claims to run");
	like(quiet_psql("SELECT ag_fit('small', 'y', '" . quick_options('"name": "next"') . "')") // '', qr/next/, "$name: the next fit works");
}
note "$n_killed killed";
cmp_ok($n_killed, '>', $rounds / 3, 'most victims were there to be killed');
is(quiet_psql(q{SELECT count(*) FROM small WHERE ag_predict('next', small) IS NULL}), '0', 'and predicts');
$node->stop;
done_testing();
