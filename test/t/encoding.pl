# Texts in a model are UTF-8: a database in LATIN1 trains and predicts, its dump predicts the same in UTF8, and back.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->start;
sub database
{
	my ($name, $encoding) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
}
my $dir = PostgreSQL::Test::Utils::tempdir();

# The names, levels and classes are beyond ASCII; the client speaks UTF-8 throughout.
my $data = q{
	SET client_encoding = 'UTF8';
	CREATE EXTENSION ag_pg;
	CREATE TABLE "Häuser" AS SELECT i % 40 AS "Größe", (ARRAY['grün', 'weiß', 'blau'])[1 + i % 3] AS "Färbung",
		(ARRAY['schön', 'häßlich'])[1 + (i % 3 = 0)::int] AS "Urteil", (i % 40) * 2.0 + (i % 3) * 50 AS "Maß" FROM generate_series(1, 400) i;
	SELECT ag_fit('"Häuser"', 'Urteil', '{"name": "Urteil é", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}');
	SELECT ag_fit('SELECT "Größe", "Färbung", "Maß" FROM "Häuser"', 'Maß', '{"name": "mass", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 30}}}');
};
my $answers = q{
	SET client_encoding = 'UTF8';
	SELECT md5(string_agg(ag_predict('mass', h)::text, ',' ORDER BY "Größe", "Färbung" COLLATE "C", "Maß")) FROM "Häuser" h;
	SELECT DISTINCT ag_predict_class('Urteil é', h) COLLATE "C" FROM "Häuser" h ORDER BY 1;
	SELECT avg((ag_predict_class('Urteil é', h) = "Urteil")::int) > 0.9 FROM "Häuser" h;
	SELECT ag_predict_proba('Urteil é', h, 'häßlich') > 0.5, ag_predict_proba('Urteil é', h) ? 'schön' FROM (SELECT 5 AS "Größe", 'grün' AS "Färbung", 1 AS "Maß") h;
	SELECT ag_predict('mass', '{"Größe": 5, "Färbung": "weiß"}') = ag_predict('mass', h), ag_predict('mass', h) <> ag_predict('mass', g)
		FROM (SELECT 5 AS "Größe", 'weiß' AS "Färbung") h, (SELECT 5 AS "Größe", 'wei' AS "Färbung") g;
	SELECT ag_info('Urteil é') -> 'classes', ag_info('mass') -> 'features';
	SELECT name FROM ag_models ORDER BY name COLLATE "C";
	SELECT count(*) FROM ag_evaluate('Urteil é', '"Häuser"') WHERE value > 0.9 AND metric = 'accuracy';
};
my %answers;
for my $encoding ('UTF8', 'LATIN1')
{
	my $from = lc $encoding;
	database($from, $encoding);
	$node->safe_psql($from, $data);
	$answers{$encoding} = $node->safe_psql($from, $answers);
	like($answers{$encoding}, qr/^häßlich\nschön\nt\nt\|t\n/m, "$encoding: classes beyond ASCII");
}
is($answers{LATIN1}, $answers{UTF8}, 'the same model in both encodings');

for my $pair ([ 'LATIN1', 'UTF8' ], [ 'UTF8', 'LATIN1' ])
{
	my ($from, $to) = @$pair;
	my $target = lc "${from}_to_$to";
	database($target, $to);
	$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/$target", lc $from ], "$from to $to: dumped");
	$node->command_ok([ 'pg_restore', '-e', '-d', $target, "$dir/$target" ], "$from to $to: restored");
	is($node->safe_psql($target, $answers), $answers{$from}, "$from to $to: the same, bit for bit");
}

# A class that the database can't write is an error of that row, not garbage.
database('wide', 'UTF8');
$node->safe_psql('wide', q{
	SET client_encoding = 'UTF8';
	CREATE EXTENSION ag_pg;
	CREATE TABLE w AS SELECT i % 40 AS x, CASE WHEN i % 40 > 20 THEN '日本' ELSE 'plain' END AS y FROM generate_series(1, 200) i;
	SELECT ag_fit('w', 'y', '{"name": "w", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}}')});
database('narrow', 'LATIN1');
$node->safe_psql('narrow', 'CREATE EXTENSION ag_pg');
$node->safe_psql('wide', q{UPDATE ag_predictor SET classes = '[]'});
$node->command_ok([ 'pg_dump', '-Fc', '--data-only', '-t', 'ag_*', '-f', "$dir/w", 'wide' ], 'the tables alone: dumped');
$node->command_ok([ 'pg_restore', '-e', '-d', 'narrow', "$dir/w" ], 'the tables alone: restored');
is($node->safe_psql('narrow', q{SELECT ag_predict_class('w', '{"x": 1}')}), 'plain', 'a class that can be written');
my ($rc, $stdout, $stderr) = $node->psql('narrow', "\\set VERBOSITY sqlstate\nSELECT ag_predict_class('w', '{\"x\": 39}')");
like($stderr, qr/22P05/, 'one that can not');
is($node->safe_psql('narrow', q{SELECT ag_predict_proba('w', '{"x": 1}', 'plain') > 0.5}), 't', 'its sibling by name');

# SQL_ASCII has bytes without a meaning: they are taken as they are.
database('bytes', 'SQL_ASCII');
$node->safe_psql('bytes', q{
	CREATE EXTENSION ag_pg;
	CREATE TABLE b AS SELECT i % 40 AS x, (ARRAY[E'gr\374n', E'wei\337', E'bl\303\274'])[1 + i % 3] AS k, (i % 3) * 10.0 + (i % 40) AS y FROM generate_series(1, 300) i;
	SELECT ag_fit('b', 'y', '{"name": "b", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60}}}');
	SELECT ag_fit('SELECT x, y, k FROM b', 'k', '{"name": "k", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60}}}')});
is($node->safe_psql('bytes', q{SELECT corr(ag_predict('b', b), y) > 0.95, avg((ag_predict_class('k', b) = k)::int) > 0.9 FROM b}), 't|t', 'SQL_ASCII: bytes are told apart and given back');
my $bytes = q{SELECT md5(string_agg(concat_ws('|', ag_predict('b', b), ag_predict_class('k', b)), ',' ORDER BY b)) FROM b};
database('bytes_again', 'SQL_ASCII');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/bytes", 'bytes' ], 'SQL_ASCII: dumped');
$node->command_ok([ 'pg_restore', '-e', '-d', 'bytes_again', "$dir/bytes" ], 'SQL_ASCII: restored');
is($node->safe_psql('bytes_again', $bytes), $node->safe_psql('bytes', $bytes), 'SQL_ASCII: the same, bit for bit');
# What is plain goes into a database whose bytes have a meaning.
database('plain', 'SQL_ASCII');
$node->safe_psql('plain', q{
	CREATE EXTENSION ag_pg;
	CREATE TABLE b AS SELECT i % 40 AS x, (ARRAY['green', 'white', 'blue'])[1 + i % 3] AS k, (i % 3) * 10.0 + (i % 40) AS y FROM generate_series(1, 300) i;
	SELECT ag_fit('b', 'y', '{"name": "b", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60}}}');
	SELECT ag_fit('SELECT x, y, k FROM b', 'k', '{"name": "k", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 60}}}')});
database('plain_to_utf8', 'UTF8');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/plain", 'plain' ], 'SQL_ASCII, plain: dumped');
$node->command_ok([ 'pg_restore', '-e', '-d', 'plain_to_utf8', "$dir/plain" ], 'SQL_ASCII to UTF8, plain: restored');
is($node->safe_psql('plain_to_utf8', $bytes), $node->safe_psql('plain', $bytes), 'SQL_ASCII to UTF8, plain: the same, bit for bit');

$node->stop;
done_testing();
