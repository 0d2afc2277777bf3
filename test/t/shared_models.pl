# Models that sessions have together: decoded by the first one, mapped by the others, with the same predictions; bounded, and gone when the
# model or its database is dropped, whatever becomes of the sessions. Also on a standby, after a crash, and where there is no memory for it.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('shared');
$node->init(allows_streaming => 1);
# mmap: segments are files of the data directory, which a test can count and forbid
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\nshared_preload_libraries = 'ag_pg'\nrestart_after_crash = on\ndynamic_shared_memory_type = mmap\n");
$node->start;
make_data($node);
my $all = q{"hyperparameters": {"GBM": [{"num_boost_round": 30}, {"num_boost_round": 3}], "CAT": {"iterations": 20}, "XT": {"n_estimators": 20}, "LR": {}, "KNN": {},
	"NN_TORCH": {"num_epochs": 2}}, "verbosity": 0};
$node->safe_psql('postgres', qq{
	CREATE ROLE analyst LOGIN;
	CREATE TABLE kinds AS SELECT i AS a, sin(i / 10.0) AS b, 'c' || i % 11 AS c, CASE WHEN i % 7 = 0 THEN 'x' WHEN i % 11 < 5 THEN 'y' ELSE 'z' END AS k FROM generate_series(1, 600) i;
	SELECT ag_fit('kinds', 'k', '{"name": "classes", $all, "num_bag_folds": 2, "num_stack_levels": 1}');
	SELECT ag_fit('big', 'y', '{"name": "number", "hyperparameters": {"XT": {"n_estimators": 8}}, "verbosity": 0}');
	SELECT ag_fit('big', 'y', '{"name": "second", "hyperparameters": {"XT": {"n_estimators": 8, "max_features": 2}}, "verbosity": 0}');
});
sub stats { my ($what, $on) = @_; return ($on // $node)->safe_psql('postgres', "SELECT $what FROM ag_stats"); }
sub fresh { my ($sql, $on) = @_; return ($on // $node)->safe_psql('postgres', $sql); }
sub segments { return scalar(my @files = glob $node->data_dir . '/pg_dynshmem/*'); }
sub reload { my ($line) = @_; $node->append_conf('postgresql.conf', $line); $node->reload; sleep 1; return; }

# every way to predict, rows one by one and many at once
my $answers = q{
	SELECT md5(string_agg(ag_predict_proba('classes', s)::text, ',' ORDER BY a)) FROM kinds s;
	SELECT md5(string_agg(proba::text, ',' ORDER BY key::int)) FROM ag_predict_table('classes', 'kinds', 'a');
	SELECT md5(string_agg(ag_predict('number', s)::text, ',' ORDER BY a)) FROM big s WHERE a <= 700;
	SELECT md5(string_agg(value::text, ',' ORDER BY key::int)) FROM ag_predict_table('number', 'SELECT * FROM big WHERE a <= 700', 'a');
	SELECT md5(string_agg(feature || contribution::text, ',' ORDER BY feature)) FROM ag_explain('number', '{"a": 5, "b": 0.3, "c": "2"}');
};
$node->append_conf('postgresql.conf', "ag_pg.shared_model_cache_size = 0\n");
$node->reload;
sleep 1;
$node->safe_psql('postgres', 'SELECT ag_stats_reset()');
stats('fits');
my $empty = segments(); # from 17 on statistics and the table of what is shared are segments too
my $private = fresh($answers);
is(stats('shared_hits, cache_misses, shared_models, shared_bytes'), '0|2|0|0', 'nothing is shared at size 0');
is(segments(), $empty, 'and no memory for it is there');
reload("ag_pg.shared_model_cache_size = 64MB\n");
$node->safe_psql('postgres', 'SELECT ag_stats_reset()');
is(fresh($answers), $private, 'the session that shares predicts the same');
is(stats('shared_hits, cache_misses, shared_models, shared_bytes > 100000'), '0|2|2|t', 'it has decoded both models');
is(segments(), $empty + 2, 'each has a segment');
is(fresh($answers), $private, 'the next session too, to the bit');
is(stats('shared_hits, cache_misses, shared_models'), '2|2|2', 'and has decoded none');
is(fresh(qq{SET ag_pg.model_cache_size = 0; $answers}), $private, 'a session without a cache');
is(fresh(q{ALTER TABLE big SET (parallel_workers = 2); SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;
	SELECT md5(string_agg(p::text, ',' ORDER BY a)) FROM (SELECT a, ag_predict('number', s) AS p FROM big s WHERE a <= 700) s}), (split /\n/, $private)[2], 'parallel workers');
is(stats('cache_misses'), '2', 'none of them decodes');
$node->safe_psql('postgres', 'ALTER TABLE big RESET (parallel_workers)');
is($node->safe_psql('postgres', q{SELECT ag_prewarm('second'); SELECT shared_models FROM ag_stats}), "\n3", 'ag_prewarm shares');
my ($rc, $out, $err) = $node->psql('postgres', q{SELECT ag_predict('number', '{"a": 1}')}, extra_params => [ '-U', 'analyst' ]);
like($err, qr/does not exist|permission denied/, 'what is shared is no one else\'s to use');

# --- sessions that end in every way
my $count = q{SELECT count(ag_predict('second', s)) FROM big s};
($rc, $out, $err) = $node->psql('postgres', q{DO $$ BEGIN PERFORM ag_predict('second', s), 1 / (a - 500) FROM big s; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END $$;} . $count);
is($out, '20000', 'an error in the middle of a statement');
my $victim = $node->background_psql('postgres', on_error_stop => 0);
$victim->query_safe($count);
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
eval { $victim->quit };
my $holder = $node->background_psql('postgres', on_error_stop => 0);
is($holder->query_safe($count), '20000', 'a session that keeps the model');
my $bytes = stats('shared_bytes');
$node->safe_psql('postgres', q{BEGIN; SELECT ag_drop('second'); ROLLBACK});
is(stats('shared_models, shared_bytes < ' . $bytes), '2|f', 'dropped: nobody finds it any more, but its memory is still in use');
is(fresh("$count; SELECT shared_models FROM ag_stats"), "20000\n3", 'the drop was rolled back: it is shared again');
$node->safe_psql('postgres', q{SELECT ag_drop('second')});
is($holder->query_safe(q{SELECT count(ag_predict('number', s)) FROM big s}), '20000', 'the session goes on with another model');
is(stats('shared_models, shared_bytes < ' . $bytes), '2|t', 'and has let go of the dropped one');
is(segments(), $empty + 2, 'whose memory is free');
$holder->quit;

# --- a bound that holds one of two
$node->safe_psql('postgres', q{SELECT ag_fit('big', 'y', '{"name": "second", "hyperparameters": {"XT": {"n_estimators": 8, "max_features": 2}}, "verbosity": 0}')});
my $size = $node->safe_psql('postgres', q{SELECT ag_drop('classes'); SELECT ag_prewarm('number'); SELECT shared_bytes FROM ag_stats});
$size = (split /\n/, $size)[-1];
my $bound = int($size * 1.5 / 1024);
reload("ag_pg.shared_model_cache_size = ${bound}kB\n");
is(fresh(qq{$count; SELECT shared_models, shared_bytes <= $bound * 1024::bigint FROM ag_stats}), "20000\n1|t", 'a model that nobody has mapped makes room for another');
$node->safe_psql('postgres', 'SELECT ag_stats_reset()');
$holder = $node->background_psql('postgres', on_error_stop => 0);
$holder->query_safe($count);
is(stats('shared_hits, cache_misses'), '1|0', 'the other one is the one that is shared');
is(fresh(q{SELECT count(ag_predict('number', s)) FROM big s; SELECT cache_misses, shared_models FROM ag_stats}), "20000\n1|1", 'one in use does not: the first is decoded for its session alone');
sleep 6;
fresh(q{SELECT ag_prewarm('number')});
is(stats("shared_models, shared_bytes > 0 AND shared_bytes <= $bound * 1024::bigint"), '0|t', 'one that is mapped but unused is retired');
is($holder->query_safe(q{SELECT count(ag_predict('number', s)) FROM big s}), '20000', 'its session lets go');
is(fresh(q{SELECT ag_prewarm('number'); SELECT shared_models FROM ag_stats}), "\n1", 'so that there is room');
$holder->quit;
reload("ag_pg.shared_model_cache_size = 64MB\n");

# --- a bound that is lowered to nothing, and raised again
is(stats('shared_models > 0'), 't', 'something is shared');
reload("ag_pg.shared_model_cache_size = 0\n");
is(stats('shared_models, shared_bytes'), '0|0', 'no longer, when the bound is 0');
is(segments(), $empty, 'and its memory is free');
reload("ag_pg.shared_model_cache_size = 64MB\n");
is(fresh("$count; SELECT shared_models FROM ag_stats"), "20000\n1", 'and again, when it is raised');

# --- another database
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', q{CREATE EXTENSION ag_pg; CREATE TABLE small AS SELECT i % 50 AS x, (i % 50) * 2.0 AS y FROM generate_series(1, 300) AS i;
	SELECT ag_fit('small', 'y', '} . quick_options('"name": "m"') . q{'); SELECT ag_prewarm('m')});
my $shared = stats('shared_models');
is($node->safe_psql('other', 'SELECT shared_models FROM ag_stats'), $shared, 'what is shared is counted over all databases');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE other');
is($node->safe_psql('copy', q{SELECT count(ag_predict('m', s)) FROM small s; SELECT shared_models FROM ag_stats}), "300\n" . ($shared + 1), 'a copy of a database has models of its own');
$node->safe_psql('postgres', 'DROP DATABASE other');
$node->safe_psql('postgres', 'DROP DATABASE copy');
is(stats('shared_models'), $shared - 1, 'those of dropped databases are gone');

# --- a standby shares for itself
$node->backup('first');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'first', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my $sum = q{SELECT md5(string_agg(ag_predict('number', s)::text, ',' ORDER BY a)) FROM big s WHERE a <= 700};
is(fresh($sum, $standby), (split /\n/, $private)[2], 'a standby predicts the same');
is(fresh("$sum; SELECT shared_hits, cache_misses, shared_models FROM ag_stats", $standby) =~ s/^\w+\n//r, '1|1|1', 'its second session decodes nothing');
$standby->stop;

# --- a crash of the server's memory
$holder = $node->background_psql('postgres', on_error_stop => 0);
$holder->query_safe($count);
my $boot = boot_time($node);
kill 'KILL', $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
eval { $holder->quit };
ok(wait_until(30, sub { my ($rc, $out) = $node->psql('postgres', 'SELECT 1'); return ($out // '') eq '1' && boot_time($node) ne $boot; }), 'the server restarts');
is(stats('shared_models, shared_bytes'), '0|0', 'with nothing shared');
is(fresh("$sum; SELECT shared_models FROM ag_stats"), (split /\n/, $private)[2] . "\n1", 'and shares again');

# --- no memory for it
$node->safe_psql('postgres', q{SELECT ag_stats_reset()});
chmod 0500, $node->data_dir . '/pg_dynshmem';
my $log = -s $node->logfile;
is(fresh("$count; $count"), "20000\n20000", 'where no segment can be made, a session predicts all the same');
chmod 0700, $node->data_dir . '/pg_dynshmem';
is(stats('shared_models, cache_misses'), '1|1', 'by a model of its own');
my $told = substr(slurp_file($node->logfile), $log);
like($told, qr/LOG:  ag_pg could not share a model between sessions: could not open shared memory segment.*\n.*HINT:  Each session decodes it/, 'and the log says why');
unlike($told, qr/leak|WARNING/, 'nothing is left behind');
is(fresh("$count; SELECT shared_models FROM ag_stats"), "20000\n2", 'the next one shares');
$node->stop;
is(segments(), 0, 'and none outlives the server');
done_testing();
