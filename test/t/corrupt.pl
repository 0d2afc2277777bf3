# Damaged or forged bytes of a model are an error (XX001) of the call, never a crash; the session and the server go on.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "ag_pg.shared_model_cache_size = 0\n"); # each session reads the bytes
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION ag_pg;
	CREATE TABLE s AS SELECT i % 50 AS x, 'k' || i % 3 AS k, CASE WHEN i % 50 > 20 THEN 'hi' ELSE 'lo' END AS y FROM generate_series(1, 400) i;
	SELECT ag_fit('s', 'y', '{"name": "m", "verbosity": 0, "hyperparameters": {"GBM": [{"num_boost_round": 20}, {"num_boost_round": 5}]}}');
});
my $boot = $node->safe_psql('postgres', q{SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
my $works = q{SELECT count(ag_predict_class('m/WeightedEnsemble_L2', s)) FROM s};
is($node->safe_psql('postgres', $works), '400', 'it predicts at first');

# Each in a session of its own, so that nothing is opened yet.
sub damage
{
	my ($what, $sql, $want) = @_;
	$want //= qr/XX001/;
	my ($rc, $stdout, $stderr) = $node->psql('postgres', "BEGIN; $sql;\n\\set VERBOSITY sqlstate\n$works;\nROLLBACK; SELECT 'goes on'", on_error_stop => 0);
	like($stderr, $want, $what);
	like($stdout, qr/goes on/, "$what: the session goes on");
}
damage('a flipped bit', q{UPDATE ag_member_part SET data = set_bit(data, 777, 1 - get_bit(data, 777))});
damage('a wrong checksum', q{UPDATE ag_member_part SET checksum = checksum + 1});
damage('no bytes', q{UPDATE ag_member_part SET data = ''});
damage('no parts', q{DELETE FROM ag_member_part});
damage('no pipeline', q{DELETE FROM ag_member_part WHERE member = 0});
damage('no model', q{DELETE FROM ag_member_part WHERE member > 0});
damage('a part that is not the first', q{UPDATE ag_member_part SET part = 1});
damage('half of it', q{UPDATE ag_member_part SET data = substr(data, 1, length(data) / 2)});
damage('members swapped', q{UPDATE ag_member_part SET member = member + 100 WHERE member < 2147483647; UPDATE ag_member_part SET member = 101 - member WHERE member IN (100, 101)});
damage('an ensemble of unknown models', q{UPDATE ag_member SET inputs = '[{"model": "NOPE", "weight": 1}]' WHERE inputs IS NOT NULL});
damage('an ensemble of itself', q{UPDATE ag_member SET inputs = jsonb_build_array(jsonb_build_object('model', name, 'weight', 1)) WHERE inputs IS NOT NULL});
damage('an ensemble of nothing', q{UPDATE ag_member SET inputs = '[]' WHERE inputs IS NOT NULL});
damage('inputs that are no list', q{UPDATE ag_member SET inputs = '{"a": 1}' WHERE inputs IS NOT NULL});
damage('inputs that are a number', q{UPDATE ag_member SET inputs = '7' WHERE inputs IS NOT NULL});
damage('inputs that are numbers', q{UPDATE ag_member SET inputs = '[7]' WHERE inputs IS NOT NULL});
damage('a weight that is a text', q{UPDATE ag_member SET inputs = '[{"model": "GBM", "weight": "1"}]' WHERE inputs IS NOT NULL});
damage('a weight beyond all bounds', q{UPDATE ag_member SET inputs = '[{"model": "GBM", "weight": 1e400}]' WHERE inputs IS NOT NULL}, qr/XX001|22003/);
damage('a negative weight', q{UPDATE ag_member SET inputs = '[{"model": "GBM", "weight": -1e308}, {"model": "GBM_2", "weight": -1e308}]' WHERE inputs IS NOT NULL}, qr/XX001|^$/);
damage('a member that is not there', q{UPDATE ag_member SET name = 'OTHER' WHERE inputs IS NOT NULL}, qr/42704/);
damage('no members', q{DELETE FROM ag_member}, qr/42704/);
damage('a model that says it is an ensemble', q{UPDATE ag_member SET family = 'ENS_WEIGHTED'});
damage('a bytea beyond its length', q{UPDATE ag_member_part SET data = data || data});

$node->safe_psql('postgres', q{CREATE TABLE r AS SELECT i % 50 AS x, (i % 50) * 2.0 AS y FROM generate_series(1, 200) i; SELECT ag_fit('r', 'y', '{"name": "number", "verbosity": 0, "hyperparameters": {"LR": {}}}')});
$works = q{SELECT count(*) FROM ag_evaluate('number', 'r')};
damage('a number weighted by classes', q{UPDATE ag_predictor SET options = options || '{"sample_weight": "balance_weight", "weight_evaluation": true}' WHERE name = 'number'});
$works = q{SELECT count(ag_predict_class('m/WeightedEnsemble_L2', s)) FROM s};

is($node->safe_psql('postgres', $works), '400', 'it predicts at last');
is($node->safe_psql('postgres', q{SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'}), $boot, 'the server never went down');

$node->stop;
done_testing();
