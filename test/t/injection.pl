# Names and values of users that end up in another language: in the HTML of a report, in SQL that is exported, made or told to be pasted, in JSON and in
# other programs' formats. They are text there, whatever is in them, and with any setting of how SQL reads strings.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('injection');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION ag_pg;
	CREATE TABLE ran (who text);
	CREATE FUNCTION boom() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ran VALUES (current_user); RAISE WARNING 'it ran'; RETURN true; END $$;
	CREATE TABLE d AS SELECT i AS id, i % 40 AS a, CASE i % 5
			WHEN 0 THEN $q$'); SELECT boom(); --$q$ WHEN 1 THEN $q$\' || boom()::text || '$q$ WHEN 2 THEN $q$\$q$ WHEN 3 THEN $q$zq<"zq'zq>&zz$q$ ELSE $q$$$ || boom() || $$$q$ END AS c,
		(i % 40) * 2.0 + i % 5 * 30 AS y, CASE WHEN i % 40 > 20 THEN $q$zq<"zq'zq>&zz$q$ ELSE $q$</script><script>zq(1)</script>$q$ END AS k FROM generate_series(1, 800) i;
	ALTER TABLE d RENAME a TO "a"" + boom()::int + ""a";
	ALTER TABLE d RENAME k TO "zq<""zq'zq>&zz";
	ALTER TABLE d RENAME y TO "y\' OR boom() --";
});
my $model = q{zq<"zq'zq>&zz \ };
my $quick = '"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 20}}';
sub quoted { my ($text) = @_; $text =~ s/'/''/g; return $text =~ /\\/ ? "E'" . $text =~ s/\\/\\\\/gr . "'" : "'$text'"; }
sub nothing_ran { my ($what) = @_; return is($node->safe_psql('postgres', 'SELECT count(*) FROM ran'), '0', "$what: nothing of it ran"); }
my ($rc, $out, $err);

my $options = sub { my ($name) = @_; return "('{$quick}'::jsonb || jsonb_build_object('name', " . quoted($name) . '::text))'; };
my $numbers = q{SELECT "a"" + boom()::int + ""a", c, "y\' OR boom() --" FROM d};
my $classes = q{SELECT "a"" + boom()::int + ""a", c, "zq<""zq'zq>&zz" FROM d};
($rc, $out, $err) = $node->psql('postgres', 'SET client_min_messages = notice; SELECT ag_fit(' . quoted($numbers) . ', ' . quoted(q{y\' OR boom() --}) . ', ' . $options->($model) . q{ || '{"verbosity": 2}')});
is($out, $model, 'a model of a name like that') or diag($err);
is($node->safe_psql('postgres', 'SELECT ag_fit(' . quoted($classes) . ', ' . quoted(q{zq<"zq'zq>&zz}) . ', ' . $options->("k$model") . ')'), "k$model", 'and one of classes');
nothing_ran('fits');

# ---- what is told to be pasted

for my $strings ('on', 'off')
{
	my $set = "SET escape_string_warning = off; SET standard_conforming_strings = $strings;";
	for my $call (split /\n/, $node->safe_psql('postgres', "$set SELECT replace(predict_with, ', t)', ', d)') FROM ag_models ORDER BY name"))
	{
		is($node->safe_psql('postgres', "$set SELECT count($call) FROM d"), '800', "pasted, with standard_conforming_strings $strings: $call");
	}

	# ---- exported SQL, and a function

	my $sql = $node->safe_psql('postgres', 'SELECT ag_export(' . quoted("$model/GBM") . ", 'sql')");
	is($node->safe_psql('postgres', "$set SELECT count(*), bool_and(abs(($sql) - ag_predict(" . quoted($model) . ', d)) < 1e-9) FROM d'), '800|t', "exported SQL, with standard_conforming_strings $strings");
	my $function = qq{"f""\\'; SELECT boom(); --$strings"};
	($rc, $out, $err) = $node->psql('postgres', "$set SELECT ag_create_function(" . quoted($model) . ', ' . quoted($function) . ", 'd')");
	is($rc, 0, "a function of such a name, with standard_conforming_strings $strings") or diag($err);
	is($node->safe_psql('postgres', "$set SELECT count($function(d)) FROM d"), '800', 'predicts');
	nothing_ran("with standard_conforming_strings $strings");
}
my $dump = '';
$node->run_log([ 'pg_dump', '-d', $node->connstr('postgres') ], '>', \$dump);
$node->safe_psql('postgres', 'CREATE DATABASE again');
my $file = PostgreSQL::Test::Utils::tempdir() . '/dump';
append_to_file($file, $dump);
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('again'), '-f', $file ], 'a dump of all that is restored');
is($node->safe_psql('again', 'SELECT count(ag_predict(' . quoted($model) . ', d)) FROM d'), '800', 'and predicts');
is($node->safe_psql('again', 'SELECT count(*) FROM ran'), '0', 'nothing ran there either');

# ---- JSON and other programs' formats

is($node->safe_psql('postgres', 'SELECT string_agg(f ->> \'column\', \'|\' ORDER BY f ->> \'column\') FROM jsonb_array_elements(ag_export(' . quoted("$model/GBM") . q{, 'json')::jsonb -> 'features') f}),
	q{a" + boom()::int + "a|c}, 'JSON keeps the names');
is($node->safe_psql('postgres', 'SELECT array_agg(l ORDER BY l) = (SELECT array_agg(DISTINCT c ORDER BY c) FROM d) FROM jsonb_array_elements(ag_export(' . quoted("$model/GBM") . q{, 'json')::jsonb -> 'features') f, jsonb_array_elements_text(f -> 'levels') l}),
	't', 'and the values');
$node->safe_psql('postgres', 'SELECT ag_fit(' . quoted(q{SELECT "a"" + boom()::int + ""a", 1.5 * id AS "b
tree_sizes=1", "y\' OR boom() --" FROM d}) . ', ' . quoted(q{y\' OR boom() --}) . ', ' . $options->('plain') . ')');
like($node->safe_psql('postgres', q{SELECT substring(ag_export('plain/GBM', 'lightgbm_text') FROM 'feature_names=[^\n]*\n[a-z_]+=')}), qr/^feature_names=a_?\S* b_tree_sizes_1\nfeature_infos=$/, 'LightGBM\'s lines stay lines');
is($node->safe_psql('postgres', q{SELECT ag_export('plain/GBM', 'xgboost_json')::jsonb -> 'learner' -> 'feature_names'}), q{["a\" + boom()::int + \"a", "b\ntree_sizes=1"]}, 'XGBoost\'s names are the names');
# and the way back
$node->safe_psql('postgres', q{SELECT ag_import('back', ag_export('plain/GBM', 'xgboost_json'), 'xgboost_json')});
my $back = $node->safe_psql('postgres', q{SELECT ag_export('back', 'sql')});
is($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT ($back) AS p FROM (SELECT *, 1.5 * id AS \"b\ntree_sizes=1\" FROM d) s) s WHERE p IS NOT NULL"), '800', 'what was imported is exported as SQL');
nothing_ran('formats');

# ---- the report

for my $call ('ag_report(' . quoted($model) . ')', 'ag_report(' . quoted($model) . ", 'd')", 'ag_report(' . quoted("k$model") . ", 'd')")
{
	my $page = $node->safe_psql('postgres', "SELECT $call");
	like($page, qr/zq&lt;/, "$call: names are shown");
	unlike($page, qr/zq<|<"zq|zq'|zq>|&zz|<\/?script>zq/, 'as text, wherever they stand');
	unlike($page, qr/https?:\/\/(?!www\.w3\.org)|\bon\w+\s*=|javascript:|url\(/i, 'and the page fetches nothing, nor runs anything of theirs');
}
nothing_ran('reports');
$node->stop;
done_testing();
