# CPUs, memory, slots and background workers are budgets over all running fits: fits queue or share, none hangs, and who can't be served
# in time is told why.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = PostgreSQL::Test::Cluster->new('resources');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nmax_worker_processes = 4\n");
$node->start;
make_data($node);

sub set { $node->safe_psql('postgres', "LOAD 'ag_pg';" . join '', map { "ALTER SYSTEM SET $_;" } @_); $node->reload; return; }
sub small_fit { my ($name, $more) = @_; return "SELECT ag_fit('small', 'y', '" . quick_options("\"name\": \"$name\"" . ($more // '')) . "')"; }

# ten at once with three free workers: each works
my $began = time;
my @fits = map { start_fit($node, small_fit("ten_$_")) } 1 .. 10;
end_fit($_) for @fits;
is(scalar(grep { $_->{out} =~ /^ten_\d+$/ } @fits), 10, 'ten fits at once work') or diag(map { $_->{err} } @fits);
cmp_ok(time - $began, '<', 30, 'and none hangs');
nothing_left($node, 'ten fits');

# versions of one name, fitted at once
@fits = map { start_fit($node, small_fit('same')) } 1 .. 4;
end_fit($_) for @fits;
is($node->safe_psql('postgres', q{SELECT string_agg(version::text, ' ' ORDER BY version) FROM ag_predictor WHERE name = 'same'}), '1 2 3 4',
	'fits of one name at once give versions one after the other');

# a version that was activated by hand stays the current one, and the fit says so
$node->safe_psql('postgres', q{SELECT ag_activate('same', 2)});
my $err = '';
$node->psql('postgres', small_fit('same'), stderr => \$err);
like($err, qr/stored as "same", version 5\nHINT:.*ag_predict\('same\@5', t\).*\n.*NOTICE:  version 2 stays the current version of "same", as it is pinned\nHINT:.*'same\@5'.*ag_activate\('same', NULL\)/,
	'a fit under a pinned version says which version is current');

# a refit that is no better pins the version that it doesn't replace, and says so
$node->safe_psql('postgres', q{SELECT ag_activate('same', NULL)});
$node->psql('postgres', q{SELECT ag_refresh('same')}, stderr => \$err);
like($err, qr/NOTICE:  version 5 of "same" \(score \S+\) stays the current one, not version 6 .*\nDETAIL:  It is pinned now\.\nHINT:.*ag_activate\('same', NULL\)/,
	'a refit that is no better says which version is pinned');

# no worker within the time limit
@fits = map { start_fit($node, slow_fit("\"name\": \"worker_$_\"")) } 1 .. 3;
ok(wait_until(20, sub { supervisors($node) == 3 }), 'all workers taken');
$node->psql('postgres', small_fit('late', ', "time_limit": 1'), stderr => \$err);
like($err, qr/NOTICE:  waiting for a free background worker/, 'who has to wait is told');
like($err, qr/no background worker became free within the time limit of 1 s\nHINT:.*max_worker_processes/, 'no worker in time: an error says so');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT ag_fit%' AND backend_type = 'client backend'});
end_fit($_) for @fits;
nothing_left($node, 'fits that took all workers');

# one slot: the second waits, is told, and gets its turn; or runs out of time
set('ag_pg.max_fits = 1');
my $slow = start_fit($node, slow_fit('"name": "slot_1", "num_cpus": 1'));
wait_for_training($node);
$node->psql('postgres', small_fit('slot_late', ', "time_limit": 1, "num_cpus": 1, "verbosity": 2'), stderr => \$err);
like($err, qr/NOTICE:  waiting for a training slot \(ag_pg.max_fits\)/, 'waiting for a slot is told');
like($err, qr/the time limit of 1 s passed while waiting [\d.]+ s for a training slot \(ag_pg.max_fits\)\nHINT:.*num_cpus/, 'no slot in time: an error says so');
my $second = start_fit($node, small_fit('slot_2', ', "num_cpus": 1'));
wait_until(5, sub { supervisors($node) == 2 });
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%slot_1%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()});
end_fit($slow);
end_fit($second);
like($second->{out}, qr/^slot_2$/, 'the slot given back is taken');

# a transaction that holds a name and then needs the slot, and a fit that waits for that name: the one who waits for a lock holds no slot
my $holder = start_fit($node, "BEGIN; " . small_fit('held') . "; SELECT pg_sleep(1.5); " . small_fit('other') . '; COMMIT');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT ag_fit%' AND wait_event = 'PgSleep'}),
	'one fit done in an open transaction');
my $waiter = start_fit($node, small_fit('held'));
end_fit($holder);
end_fit($waiter);
is($node->safe_psql('postgres', q{SELECT string_agg(name || version, ' ' ORDER BY name, version) FROM ag_predictor WHERE name IN ('held', 'other')}),
	'held1 held2 other1', 'a fit that waits for a name holds no slot') or diag("$holder->{err}\n$waiter->{err}");
set('ag_pg.max_fits = 8');

# one CPU for all: one after the other, and the same predictor as with two
set('ag_pg.num_cpus = 1');
my $first = start_fit($node, slow_fit('"name": "cpu_1"'));
wait_for_training($node);
$node->psql('postgres', small_fit('cpu_late', ', "time_limit": 1'), stderr => \$err);
like($err, qr/while waiting [\d.]+ s for a CPU \(ag_pg.num_cpus\)/, 'no CPU in time: an error says so');
my $too_late = start_fit($node, small_fit('cpu_too_late', ', "time_limit": 4'));
sleep 3.4;
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%cpu_1%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()});
end_fit($first);
end_fit($too_late);
like($too_late->{err}, qr/ERROR:.*time limit of 4 s (passed while|was left after) waiting [\d.]+ s for a CPU \(ag_pg.num_cpus\)\nHINT:.*num_cpus.*ag_pg.max_fits/,
	'a CPU so late that nothing can be fitted: an error says so');
$node->safe_psql('postgres', small_fit('one_cpu'));
set('ag_pg.num_cpus = 0');
$node->safe_psql('postgres', small_fit('all_cpus'));
is($node->safe_psql('postgres', q{SELECT count(DISTINCT md5(p.data)) FROM ag_member_part AS p JOIN ag_predictor AS a ON a.id = p.predictor
	WHERE a.name IN ('one_cpu', 'all_cpus') AND member = 1}), '1', 'the same bytes on any number of CPUs');

# memory: of the fit, and of all fits together
$node->psql('postgres', "SELECT ag_fit('big', 'y', '{\"memory_limit\": 0.0005}')", stderr => \$err);
like($err, qr/ERROR:.*memory.*\n(DETAIL.*\n)?HINT/, 'a fit over its own memory_limit: an error with a hint');
is($node->safe_psql('postgres', q{SELECT count(*) FROM ag_predictor WHERE name = 'big_y'}), '0', 'and nothing stored');
set("ag_pg.memory_limit = '64MB'");
$node->safe_psql('postgres', 'CREATE TABLE wide AS SELECT i AS y, ' . join(', ', map { "random() AS f$_" } 1 .. 60) . ' FROM generate_series(1, 200000) AS i');
my ($state, $message) = split /\|/, $node->safe_psql('postgres', q{
	CREATE FUNCTION state_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN EXECUTE statement; RETURN 'worked'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || '|' || SQLERRM; END $$;
	SELECT state_of($$SELECT ag_fit('wide', 'y')$$)});
is($state, '53200', 'more rows than ag_pg.memory_limit: SQLSTATE 53200');
nothing_left($node, 'a fit that found no memory');
is($node->safe_psql('postgres', small_fit('after_memory')), 'after_memory', 'a small fit still works');
$node->psql('postgres', "SELECT ag_fit('small', 'y', '{\"memory_limit\": 1000, \"name\": \"asked_much\"}')", stderr => \$err);
like($err, qr/WARNING:  memory_limit of 1000 GB is more than fits may use/, 'an option can not raise the limit');
set("ag_pg.memory_limit = '1GB'");
for my $case ([ 'the fit', '"num_cpus": 5000' ], [ 'a training', '"ag_args_fit": {"num_cpus": 5000}' ], [ 'a bag', '"num_bag_folds": 2, "ag_args_ensemble": {"ag_args_fit": {"num_cpus": 5000}}' ])
{
	$node->psql('postgres', small_fit('asked_cpus', ", $case->[1]"), stderr => \$err);
	like($err, qr/WARNING:  num_cpus of 5000 is more than fits may use; \d+ it is\nHINT:  This machine, or/, "no more CPUs than there are, for $case->[0]: it says so");
}
set('ag_pg.num_cpus = 1');
$node->psql('postgres', small_fit('asked_cpus', ', "num_cpus": 2'), stderr => \$err);
like($err, qr/WARNING:  num_cpus of 2 is more than fits may use; 1 it is\n/, 'nor than the setting allows');
unlike($node->safe_psql('postgres', small_fit('asked_cpus', ', "num_cpus": 1') =~ s/SELECT/SET client_min_messages = error; SELECT/r), qr/WARNING/, 'what there is needs no words');
set('ag_pg.num_cpus = 0');

# the limits are for superusers
my (undef, undef, $denied) = $node->psql('postgres', q{CREATE ROLE plain; SET ROLE plain; SELECT ag_version(); SET ag_pg.memory_limit = '10GB'});
like($denied, qr/permission denied to set parameter "ag_pg.memory_limit"/, 'limits are for superusers');
my (undef, $value) = $node->psql('postgres', q{SET ROLE plain; SET ag_pg.memory_limit = '10GB'; SELECT ag_version(); SHOW ag_pg.memory_limit});
like($value, qr/^1GB$/m, 'before the library is loaded too');
(undef, undef, $denied) = $node->psql('postgres', q{SELECT ag_version(); SET ag_pg.no_such_setting = 1});
# before 15 a server can only warn of what was set before the library came
like($denied, qr/invalid configuration parameter name|unrecognized configuration parameter/, 'the prefix is reserved') if $node->safe_psql('postgres', 'SHOW server_version_num') >= 150000;
nothing_left($node, 'all');
$node->stop;
done_testing();
