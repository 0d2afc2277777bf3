# A hot standby predicts, shows and evaluates; it refuses to fit or to change; what the primary fits arrives through WAL.
use strict;
use warnings;
use lib 'test/perl';
use AgFit;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "ag_pg.max_jobs = 1\n");
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION ag_pg;
	CREATE TABLE s AS SELECT i % 50 AS x, 'k' || i % 3 AS k, (i % 50) * 2.0 + i % 3 AS y, i % 50 > 20 AS b FROM generate_series(1, 400) i;
	CREATE FUNCTION fit(name text, label text) RETURNS text LANGUAGE sql AS
		$$ SELECT ag_fit('SELECT x, k, ' || label || ' FROM s', label, jsonb_build_object('name', name, 'verbosity', 0) || '{"hyperparameters": {"GBM": {"num_boost_round": 30}}}') $$;
	SELECT fit('num', 'y');
	SELECT fit('bool', 'b');
	SELECT ag_create_function('num', 'predict_y', 's');
});
$primary->backup('first');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'first', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

my $answers = q{
	SELECT md5(string_agg(concat_ws('|', ag_predict('num', s), ag_predict('bool', to_jsonb(s)), ag_predict_proba('bool', s), predict_y(s)), ',' ORDER BY s)) FROM s;
	SELECT model, score_val FROM ag_leaderboard('num') ORDER BY model COLLATE "C";
	SELECT metric, value FROM ag_evaluate('num', 's') ORDER BY metric COLLATE "C";
	SELECT md5(ag_info('num')::text);
	SELECT name, version FROM ag_models ORDER BY name COLLATE "C";
};
is($standby->safe_psql('postgres', $answers), $primary->safe_psql('postgres', $answers), 'the same answers on both, bit for bit');
is( $standby->safe_psql('postgres', q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SELECT count(ag_predict('num', s)) FROM s}),
	'400', 'in a parallel plan too');

my $refused = sub {
	my ($sql, $what) = @_;
	my $started = time;
	my ($rc, $stdout, $stderr) = $standby->psql('postgres', "\\set VERBOSITY sqlstate\n$sql");
	like($stderr, qr/25006/, "$what: the standard error");
	ok(time - $started < 2, "$what: at once");
};
$refused->(q{SELECT fit('z', 'y')}, 'fit');
$refused->(q{SELECT ag_drop('num')}, 'drop');
$refused->(q{SELECT ag_activate('num', 1)}, 'activate');
$refused->(q{SELECT ag_create_function('num', 'f', 's')}, 'create function');

# a session that has opened the model sees the new version, and its end
my $session = $standby->background_psql('postgres', on_error_stop => 0);
my $before = $session->query_safe(q{SELECT round(avg(ag_predict('num', s))) < 500 FROM s});
is($before, 't', 'an open session predicts');
$primary->safe_psql('postgres', q{UPDATE s SET y = y + 1000; SELECT fit('num', 'y'); SELECT fit('new', 'y')});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($session->query_safe(q{SELECT round(avg(ag_predict('num', s))) > 500 FROM s}), 't', 'and sees the new version');
is($session->query_safe(q{SELECT count(ag_predict('new', s)) FROM s}), '400', 'and a new model');
$primary->safe_psql('postgres', q{SELECT ag_drop('num')});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my ($rc, $stdout, $stderr) = $standby->psql('postgres', q{SELECT ag_predict('num', s) FROM s LIMIT 1});
like($stderr, qr/model "num" does not exist/, 'and its end');
$session->quit;

# promoted, it fits, and never starts the primary's jobs
make_big($primary);
my ($runs, $waits) = map { $primary->safe_psql('postgres', $_ =~ s/ag_fit\(/ag_fit_async(/r) } slow_fit('"name": "slow"'), slow_fit('"name": "waited", "time_limit": 1') =~ s/"time_limit": 300, //r;
ok(wait_until(20, sub { $primary->safe_psql('postgres', "SELECT state FROM ag_jobs WHERE id = $runs") eq 'running' }), 'a job runs on the primary');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', "SELECT string_agg(state, ' ' ORDER BY id) FROM ag_jobs"), 'running queued', 'the standby shows it, and the one that waits')
  or diag($standby->safe_psql('postgres', 'SELECT * FROM ag_jobs'));
$standby->promote;
is($standby->safe_psql('postgres', "SELECT ag_wait($waits, 5)"), 'failed', 'promoted: its jobs are those of the primary');
is($standby->safe_psql('postgres', "SELECT ag_wait($runs, 5)"), 'failed', 'the one that ran, too');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ag_pg job' AND query LIKE 'job%'}), '0', 'and none is started');
$primary->safe_psql('postgres', "SELECT ag_cancel($runs)");
is($primary->safe_psql('postgres', "SELECT ag_wait($waits, 60)"), 'succeeded', 'they run where they were submitted');
is($standby->safe_psql('postgres', q{SELECT fit('new', 'y'); SELECT version FROM ag_models WHERE name = 'new'}), "new\n2", 'promoted, it fits');

$standby->stop;
$primary->stop;
done_testing();
