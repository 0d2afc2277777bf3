# The view ag_stats: what is counted, for whom, and where there is none.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('stats');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\nshared_preload_libraries = 'ag_pg'\n");
$node->start;
make_data($node);
$node->safe_psql('postgres', q{CREATE ROLE analyst LOGIN});
$node->safe_psql('postgres', q{CREATE DATABASE other});
$node->safe_psql('other', q{CREATE EXTENSION ag_pg});
sub stats { my ($what, $database) = @_; return $node->safe_psql($database // 'postgres', "SELECT $what FROM ag_stats"); }

is(stats('fits, fits_failed, fits_cancelled, fit_rows, predictions, cache_hits, shared_hits, cache_misses, shared_models, shared_bytes, since <= clock_timestamp()'), '0|0|0|0|0|0|0|0|0|0|t', 'nothing yet');
$node->safe_psql('postgres', q{SELECT ag_fit('small', 'y', '} . quick_options('"name": "m"') . q{')});
is(stats('fits, fits_failed, fit_rows, fit_time > 0, gpu_time'), '1|0|300|t|0', 'a fit');
$node->psql('postgres', q{SELECT ag_fit('SELECT x, ''NaN''::float8 AS y FROM small', 'y', '{"name": "n"}')});
is(stats('fits, fits_failed, fits_cancelled'), '1|1|0', 'one that failed');
$node->psql('postgres', q{SET statement_timeout = 1000; } . slow_fit());
is(stats('fits, fits_failed, fits_cancelled'), '1|1|1', 'one that was cancelled');
my $job = $node->safe_psql('postgres', q{SELECT ag_fit_async('small', 'y', '} . quick_options('"name": "m"') . q{')});
$node->safe_psql('postgres', "SELECT ag_wait($job)");
is(stats('fits, fit_rows', 'other'), '2|600', 'a job; seen from another database');
$job = $node->safe_psql('postgres', q{SELECT ag_fit_async('SELECT x, ''NaN''::float8 AS y FROM small', 'y', '{"name": "n"}')});
is($node->safe_psql('postgres', "SELECT ag_wait($job)"), 'failed', 'a job that fails');
is(stats('fits, fits_failed, fits_cancelled'), '2|2|1', 'is counted');

my $call = q{SELECT count(ag_predict('m', s)) FROM small s};
is($node->safe_psql('postgres', $call), '300', 'predictions');
is(stats('predictions, cache_hits < 3, cache_misses'), '300|t|1', 'are counted by rows, and a model that was read');
$node->safe_psql('postgres', qq{$call; $call; SELECT ag_predict('m', '{"x": 3}')});
is(stats('predictions, cache_hits > 3, shared_hits, cache_misses'), '901|t|1|1', 'another session finds it in shared memory, its next statements in the cache');
$node->safe_psql('postgres', q{SELECT count(*) FROM ag_predict_table('m', 'small')});
is(stats('predictions'), '1201', 'of a whole table');
$node->safe_psql('postgres', qq{BEGIN; $call; ROLLBACK});
is(stats('predictions'), '1501', 'in a transaction that is rolled back');
$node->safe_psql('postgres', qq{ALTER TABLE small SET (parallel_workers = 2); SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off; $call});
is(stats('predictions'), '1801', 'by parallel workers');
$node->safe_psql('postgres', q{SELECT ag_create_function('m', 'guess', 'small'); SELECT count(guess(s)) FROM small s});
is(stats('predictions'), '2101', 'and by a function of its own');

my ($rc, $out, $err) = $node->psql('postgres', 'SELECT fits > 0 FROM ag_stats; SELECT ag_stats_reset()', extra_params => [ '-U', 'analyst' ]);
is($out, 't', 'everybody sees them');
like($err, qr/permission denied for function ag_stats_reset/, 'not everybody resets them');
$node->safe_psql('postgres', 'SELECT ag_stats_reset()');
is(stats(q{fits, fits_failed, fits_cancelled, fit_rows, fit_time, predictions, cache_misses, since > now() - interval '1 min'}), '0|0|0|0|0|0|0|t', 'reset');

SKIP:
{
	skip 'this server can make shared memory at any time', 2 if $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
	$node->restart;
	($rc, $out, $err) = $node->psql('postgres', 'SELECT * FROM ag_stats');
	like($err, qr/ag_pg keeps no statistics here.*HINT:.*shared_preload_libraries/s, 'without the library preloaded');
	is($node->safe_psql('postgres', $call), '300', 'all else works');
}
$node->stop;
done_testing();
