# Attempts to get at what isn't one's own: rows and categories of a model that one may only predict with, somebody else's rights through
# definers, shadowing objects, stored queries and side effects of types, and the server through forged tables and hostile values.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('attack');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.max_jobs = 2\n");
$node->start;

# keeper owns the database and the extension, and is no superuser; alice owns the models; reader may predict; mallory may nothing
$node->safe_psql('postgres', q{
	CREATE ROLE keeper LOGIN; CREATE ROLE alice LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE mallory LOGIN;
	CREATE DATABASE theirs; CREATE DATABASE mine OWNER keeper;});
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $boot = boot();

sub boot { return $node->safe_psql('postgres', q{SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'}); }

# What a role's statements print, warnings and errors too.
sub try
{
	my ($user, $sql, $database) = @_;
	my ($out, $err) = ('', '');
	$node->psql($database // 'theirs', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0, extra_params => [ '-U', $user ]);
	return "$out\n$err";
}

sub gives { my ($user, $sql, $want, $name, $database) = @_; my $out = try($user, $sql, $database); chomp $out; return is($out, $want, $name); }
sub refuses { my ($user, $sql, $like, $name, $database) = @_; return like(try($user, $sql, $database), $like, $name); }

my $quick = '"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 10}, "KNN": {}, "LR": {}}';

$node->safe_psql('theirs', q{
	CREATE EXTENSION ag_pg;
	CREATE SCHEMA ward AUTHORIZATION alice; CREATE SCHEMA lair AUTHORIZATION mallory;
	GRANT CREATE ON SCHEMA public TO PUBLIC;});
try('alice', qq{
	CREATE TABLE ward.d AS SELECT 'patient ' || i % 40 AS who, i % 40 AS x, 4711.25 + i % 40 AS code, 'note about patient ' || i % 40 || ' and more words' AS note,
		CASE WHEN i % 40 > 20 THEN 'ill' ELSE 'well' END AS y FROM generate_series(1, 300) i;
	SELECT ag_fit('ward.d', 'y', '{"name": "secret", $quick}');
	SELECT ag_grant('secret', 'reader');});

# ---- what predict shows: every function of a model, called by who may only predict

my $row = q{'{"who": "x", "x": 3, "code": 1.5, "note": "n"}'::jsonb};
my $own = q{'SELECT ''x'' AS who, i AS x, 1.5 AS code, ''n'' AS note, CASE WHEN i > 20 THEN ''ill'' ELSE ''well'' END AS y FROM generate_series(1, 40) i'};
my %shown = (
	"ag_predict_class('secret', $row)" => 1, "ag_predict_proba('secret', $row)" => 1, "ag_predict_class('secret/KNN', $row)" => 1,
	"ag_info('secret')" => 1, "ag_leaderboard('secret')" => 1, "ag_leaderboard('secret', $own)" => 1, "ag_learning_curves('secret')" => 1,
	"ag_fit_summary('secret')" => 1, "ag_report('secret')" => 1, "ag_report('secret', $own)" => 1, "ag_evaluate('secret', $own)" => 1,
	"ag_confusion_matrix('secret', $own)" => 1, "ag_roc_curve('secret', $own)" => 1, "ag_pr_curve('secret', $own)" => 1,
	"ag_calibration('secret', $own)" => 1, "ag_lift('secret', $own)" => 1, "ag_threshold_metrics('secret', $own)" => 1,
	"ag_partial_dependence('secret', $own, 'who')" => 1, "ag_feature_importance('secret', $own)" => 1, "ag_explain('secret', $row)" => 1,
	"ag_explain('secret', $row, 'ill'::text)" => 1, "ag_predict_table('secret', $own)" => 1, "ag_prewarm('secret')" => 1,
	"ag_model_failures('secret')" => 1, "(SELECT string_agg(m::text, ' ') FROM ag_models m)" => 1, "(SELECT string_agg(f::text, ' ') FROM ag_features f)" => 1,
	"ag_drift('secret', $own)" => 0, "ag_predict_oof('secret')" => 0, "ag_export('secret/GBM', 'json')" => 0, "ag_export('secret/GBM', 'sql')" => 0,
	"ag_export_bytea('secret/GBM', 'onnx')" => 0, "ag_export('secret/KNN', 'json')" => 0,
	"ag_fit($own, 'y', '{\"replay\": \"secret\", \"name\": \"copy\"}')" => 0);

# the base64 and hexadecimal of the rows' words as well as the words; what alice gave as data
my $private = qr/patient|4711|note about|ward\.d|70617469656e74|cGF0aWVudA/i;
for my $call (sort keys %shown)
{
	my $out = try('reader', "SELECT $call");
	$shown{$call} ? unlike($out, qr/ERROR/, "predict: $call") : like($out, qr/permission denied/, "predict is refused: $call");
	unlike($out, $private, "predict sees no data: $call");
	like(try('mallory', "SELECT $call"), $call =~ /^\(SELECT/ ? qr/^\s*$/ : qr/model "secret" does not exist/, "no right, no model: $call");
}
for my $call ("ag_drop('secret')", "ag_drop('secret\@1')", "ag_set_decision_threshold('secret', 0.1)", "ag_activate('secret', 1)", "ag_refresh('secret')",
	"ag_refit_full('secret')", "ag_delete_members('secret', '{best}')", "ag_delete_members('secret', models_to_delete => '{KNN}', dry_run => true)", "ag_rename('secret', 'mine')",
	"ag_grant('secret', 'mallory')", "ag_revoke('secret', 'reader')", "ag_rename('secret', 'other')")
{
	refuses('reader', "SELECT $call", qr/must be owner of model "secret"/, "not the reader's: $call");
	refuses('mallory', "SELECT $call", qr/model "secret" does not exist/, "not mallory's: $call");
}
for my $sql ("SELECT ag_import('secret', '{}', 'xgboost_json')", "SELECT ag_fit('SELECT 1 AS a, 2 AS b', 'b', '{\"name\": \"secret\"}')",
	"SELECT ag_fit_async('SELECT 1 AS a, 2 AS b', 'b', '{\"name\": \"secret\"}')")
{
	refuses('reader', $sql, qr/predictor "secret" belongs to another role/, "a name that is taken: $sql");
}
refuses('mallory', q{SELECT ag_reassign('alice', 'mallory')}, qr/permission denied to reassign/, 'no models of others to oneself');
refuses('mallory', 'SELECT ag_stats_reset()', qr/permission denied/, 'counts are not for everybody to reset');
gives('mallory', q{SELECT count(*) FROM ag_doctor() d WHERE d::text ~ '/(tmp|usr|var|home|work)/'}, '0', 'the doctor tells no paths');

# ---- a function on a model: its owner's right, for whom he lets

try('alice', q{SELECT ag_create_function('secret', 'ward.ask', 'ward.d'); GRANT USAGE ON SCHEMA ward TO reader, mallory});
refuses('mallory', q{SELECT ward.ask(('x', 1, 2, 'n', 'y')::ward.d)}, qr/permission denied for function ask/, 'a function is not for everybody');
try('alice', 'GRANT EXECUTE ON FUNCTION ward.ask(ward.d) TO mallory');
like(try('mallory', q{SELECT ward.ask(('x', 1, 2, 'n', 'y')::ward.d)}), qr/^(ill|well)\n/, 'but for whom it is granted to');
refuses('mallory', q{CREATE OR REPLACE FUNCTION ward.ask(ward.d) RETURNS text LANGUAGE ag_model AS 'secret/KNN'}, qr/permission denied/, 'who can not change it');
refuses('mallory', q{CREATE FUNCTION lair.ask(jsonb) RETURNS text LANGUAGE ag_model AS 'secret'}, qr/model "secret" does not exist/, 'nor make one');
refuses('mallory', q{SET check_function_bodies = off; CREATE FUNCTION lair.ask(jsonb) RETURNS text LANGUAGE ag_model AS 'secret'; SELECT lair.ask('{}')},
	qr/model "secret" does not exist/, 'nor with its body unchecked');
refuses('mallory', q{ALTER FUNCTION lair.ask(jsonb) OWNER TO alice}, qr/must be (member of role|able to SET ROLE) "alice"/, 'nor give it to alice');
refuses('mallory', q{SELECT ag_predict_columns('secret', 'ag_predict(text, jsonb)'::regprocedure, '{x}', 1)}, qr/model "secret" does not exist/, 'nor go by the planner');
refuses('mallory', q{SELECT ag_predict_columns('secret', 'pg_read_file(text)'::regprocedure, '{x}', 1)}, qr/for the planner to call/, 'with any function');
$node->safe_psql('theirs', 'REVOKE EXECUTE ON FUNCTION ag_predict(text, record) FROM PUBLIC; GRANT EXECUTE ON FUNCTION ag_predict(text, record) TO alice');
refuses('reader', q{SELECT ag_predict_columns('secret', 'ag_predict(text, record)'::regprocedure, '{x}', 1)}, qr/permission denied for function ag_predict/, 'nor past a right that was revoked');
refuses('reader', q{CREATE FUNCTION public.ag_predict(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT ag_predict_columns('secret', 'ag_predict(int)'::regprocedure, '{x}', 1); DROP FUNCTION public.ag_predict(int)},
	qr/for the planner to call/, 'nor by a function that is only called so');
refuses('reader', q{SELECT ag_predict_class_columns('secret', o, '{who,x,code,note}', 'x'::text, 1, 1.5, 'n'::text) FROM unnest('{"ag_predict_class(text, record)", "pg_sleep(float8)"}'::regprocedure[]) o},
	qr/for the planner to call/, 'nor by another at the second row');
$node->safe_psql('theirs', 'GRANT EXECUTE ON FUNCTION ag_predict(text, record) TO PUBLIC');
refuses('mallory', q{SELECT ag_model_handler()}, qr/must take one row/, 'nor call the handler');
refuses('reader', q{SELECT ag_predict_columns('secret', 'ag_predict(text, record)'::regprocedure, ARRAY['x', NULL, 'y'], 1, 2)}, qr/3 names for 2|ERROR/, 'names that are none');

# what a session has got ready for one role, or one right, serves no other
my $ask = q{SELECT ag_predict_class('secret', t) IS NOT NULL FROM (SELECT 'x' AS who, 3 AS x, 1.5 AS code, 'n' AS note) t;};
my $out = try($superuser, qq{PREPARE ask AS $ask SET ROLE reader; $ask EXECUTE ask; EXECUTE ask; SET ROLE mallory; $ask EXECUTE ask; SET ROLE reader; EXECUTE ask; RESET ROLE; SELECT 'revoked' FROM ag_revoke('secret', 'reader');
	SET ROLE reader; $ask EXECUTE ask; RESET ROLE; SELECT 'granted' FROM ag_grant('secret', 'reader'); REVOKE EXECUTE ON FUNCTION ag_predict_class(text, record) FROM PUBLIC; SET ROLE reader; $ask EXECUTE ask;
	RESET ROLE; GRANT EXECUTE ON FUNCTION ag_predict_class(text, record) TO PUBLIC; SET ROLE reader; $ask EXECUTE ask; BEGIN; EXECUTE ask; SET LOCAL ROLE mallory; EXECUTE ask; ROLLBACK; EXECUTE ask});
is(join(' ', $out =~ /^(t|revoked|granted)$/mg), 't t t t revoked granted t t t t', 'what is kept from one execution to the next is looked at again');
is(() = $out =~ /model "secret" does not exist/g, 5, 'and is nobody else\'s');
is(() = $out =~ /permission denied for function ag_predict_class/g, 2, 'nor beyond the right to execute');

# definers within definers: each level has its own role's rights, and nobody's else, on the way in and on the way out
try('mallory', qq{CREATE FUNCTION lair.steal() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \$\$ BEGIN RETURN ag_predict_class('secret', $row); END \$\$; GRANT USAGE ON SCHEMA lair TO alice, reader; GRANT EXECUTE ON FUNCTION lair.steal() TO PUBLIC});
try('alice', qq{CREATE FUNCTION ward.lend() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \$\$ BEGIN RETURN ag_predict_class('secret', $row); END \$\$; GRANT EXECUTE ON FUNCTION ward.lend() TO mallory;
	CREATE FUNCTION ward.nest() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \$\$ BEGIN PERFORM ag_predict_class('secret', $row); RETURN lair.steal(); END \$\$; GRANT EXECUTE ON FUNCTION ward.nest() TO mallory;});
refuses('alice', 'SELECT lair.steal()', qr/model "secret" does not exist/, 'a definer has no right of who calls him');
refuses('mallory', 'SELECT ward.nest()', qr/model "secret" does not exist/, 'nor of a definer who calls him');
refuses('alice', q{SELECT ag_fit('SELECT lair.steal() AS a, 1 AS b', 'b', '{"name": "nest"}')}, qr/model "secret" does not exist/, 'nor as data of a fit');
refuses('alice', q{SELECT ag_evaluate('secret', 'SELECT lair.steal() AS who, 1 AS x, 1 AS code, ''n'' AS note, ''ill'' AS y')}, qr/model "secret" does not exist/, 'nor of an evaluation');
try('mallory', q{CREATE FUNCTION lair.wrap() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM ward.lend(); RETURN lair.steal(); END $$; GRANT EXECUTE ON FUNCTION lair.wrap() TO PUBLIC});
like(try('mallory', 'SELECT ward.lend()'), qr/^(ill|well)$/m, 'what a definer lends');
refuses('mallory', 'SELECT lair.wrap()', qr/model "secret" does not exist/, 'is his no longer when he is done');
refuses('reader', 'SELECT lair.wrap()', qr/model "secret" does not exist/, 'whoever asked');

# ---- leaky functions see no row before the views' own conditions

try('mallory', q{CREATE FUNCTION lair.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'saw %', $1; RETURN true; END $$;
	CREATE OPERATOR lair.~~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.texteq)});
for my $sql ('ag_models v WHERE lair.leak(v.name)', 'ag_models v WHERE lair.leak(v::text)', 'ag_features v WHERE lair.leak(v.feature)',
	'ag_features v WHERE lair.leak(v.categories::text)', 'ag_jobs v WHERE lair.leak(v.model)', 'ag_jobs v WHERE lair.leak(v.data) AND v.id = 1',
	"ag_models v WHERE v.name = 'secret' AND 1 / (length(v.label) - 1) > 0", 'ag_features v WHERE v.min::int / 0 = 1')
{
	try('alice', q{SELECT ag_wait(ag_fit_async('SELECT x, y FROM ward.d', 'y', '{"name": "job", "verbosity": 0, "hyperparameters": {"LR": {}}}'))}) if $sql =~ /ag_jobs v WHERE lair.leak\(v.model/;
	unlike(try('mallory', "SELECT count(*) FROM $sql"), qr/saw|division/, "no leak: $sql");
}
unlike(try('mallory', q{SELECT * FROM pg_stats WHERE tablename LIKE 'ag\_%'; EXPLAIN (ANALYZE, VERBOSE, COSTS off, TIMING off, SUMMARY off) SELECT * FROM ag_features}), $private, 'nor by statistics or plans');
refuses('mallory', 'SELECT ag_job_log(1)', qr/does not exist/, 'no log of others');
refuses('mallory', 'SELECT ag_cancel(1)', qr/does not exist/, 'no job of others to stop');
refuses('mallory', 'SELECT ag_wait(1)', qr/does not exist/, 'nor to wait for');

# ---- shadows: what the caller of a definer's function put in the way of names, operators and types

try('alice', q{
	CREATE TABLE ward.ran (who text);
	CREATE FUNCTION ward.report() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT ag_report('secret', 'ward.d') $$;
	CREATE FUNCTION ward.summary() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT string_agg(s.value, ' ') FROM ag_fit_summary('secret') s $$;
	CREATE FUNCTION ward.failures() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT count(*)::pg_catalog.text FROM ag_model_failures('secret') s $$;
	CREATE FUNCTION ward.views() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT (SELECT count(*) FROM public.ag_models) + (SELECT count(*) FROM public.ag_features) + (SELECT count(*) FROM public.ag_jobs) $$;
	CREATE FUNCTION ward.work() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT ag_set_decision_threshold('secret', 0.5); SELECT ag_activate('secret', 1);
		SELECT ag_grant('secret', 'reader'); SELECT count(*) FROM ag_delete_members('secret', '{best}', dry_run => true);
		SELECT count(*) FROM ag_leaderboard('secret', 'ward.d'); SELECT ag_predict_table('secret', 'ward.d'); SELECT ag_predict_oof('secret'); SELECT ag_learning_curves('secret');
		SELECT ag_drift('secret', 'ward.d'); SELECT ag_doctor(); SELECT ag_create_function('secret', 'ward.made', 'ward.d'); DROP FUNCTION ward.made(ward.d); SELECT 'done' $$;
	CREATE FUNCTION ward.rest() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ DECLARE own pg_catalog.text := 'SELECT ''x'' AS who, i AS x, 1.5 AS code, ''n'' AS note, CASE WHEN i > 20 THEN ''ill'' ELSE ''well'' END AS y FROM pg_catalog.generate_series(1, 40) i'; BEGIN
		PERFORM public.ag_export('plain/GBM', 'json'); PERFORM public.ag_export('plain/GBM', 'sql'); PERFORM public.ag_export_bytea('plain/GBM', 'onnx');
		PERFORM public.ag_predict_interval('plain', '{"x": 1}'::pg_catalog.jsonb, 0.9); PERFORM public.ag_predict('plain', '{"x": 1}'::pg_catalog.jsonb, NULL::pg_catalog.int4); PERFORM public.ag_explain('plain', '{"x": 1}'::pg_catalog.jsonb);
		PERFORM public.ag_evaluate('secret', own); PERFORM public.ag_leaderboard('secret', own); PERFORM public.ag_feature_importance('secret', own, 40, 1); PERFORM public.ag_partial_dependence('secret', own, 'x'); PERFORM public.ag_drift('secret', own);
		PERFORM public.ag_confusion_matrix('secret', own); PERFORM public.ag_roc_curve('secret', own); PERFORM public.ag_pr_curve('secret', own); PERFORM public.ag_calibration('secret', own); PERFORM public.ag_lift('secret', own); PERFORM public.ag_threshold_metrics('secret', own);
		PERFORM public.ag_report('secret', own); PERFORM public.ag_predict_table('secret', own); PERFORM public.ag_predict_oof('secret'); PERFORM public.ag_prewarm('secret'); PERFORM public.ag_in_test('k'::pg_catalog.text, 0.5); PERFORM public.ag_running_fits(); PERFORM public.ag_gpus();
		BEGIN
			PERFORM public.ag_import('imported'::pg_catalog.text, '{"learner":{"feature_names":["x"],"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[1.5],"default_left":[0]}]}},"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"1"},"objective":{"name":"reg:squarederror"}},"version":[2,0,0]}'::pg_catalog.text, 'xgboost_json'::pg_catalog.text);
			PERFORM public.ag_fit(own, 'y', '{"replay": "secret", "name": "replayed", "verbosity": 0}'::pg_catalog.jsonb); PERFORM public.ag_refresh('secret', 'never'); PERFORM public.ag_refit_full('secret'); PERFORM public.ag_rename('secret', 'renamed'); PERFORM public.ag_revoke('renamed', 'reader', 'predict');
			PERFORM public.ag_delete_members('renamed', '{best}'); PERFORM public.ag_cancel(public.ag_fit_async(own, 'y', '{"name": "late", "verbosity": 0}'::pg_catalog.jsonb)); PERFORM public.ag_reassign('alice', 'alice');
			PERFORM public.ag_drop('renamed'); RAISE EXCEPTION 'undone' USING ERRCODE = 'AG000';
		EXCEPTION WHEN SQLSTATE 'AG000' THEN NULL; END;
		RETURN 'done'; END $$;
	CREATE FUNCTION ward.fit() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT ag_fit('ward.d', 'y', '{"name": "again", "verbosity": 0, "hyperparameters": {"LR": {}}}'); SELECT ag_drop('again')::pg_catalog.text $$;
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ward TO mallory;});
try('alice', qq{SELECT ag_fit('SELECT x, code FROM ward.d', 'code', '{"name": "plain", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 10}}}')});
my $shadows = q{
	CREATE FUNCTION pg_temp.ran() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN true; END $$;
	CREATE FUNCTION lair.ran() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN true; END $$;};
for my $type (qw(float8 text jsonb int4 int8 uuid name bool numeric bytea timestamptz oid regclass))
{
	$shadows .= "CREATE DOMAIN pg_temp.$type AS pg_catalog.$type CHECK (pg_temp.ran());\n";
}
for my $name (qw(ag_predictor ag_predictor_feature ag_member ag_member_part ag_predictor_grant ag_job ag_models ag_jobs ag_features pg_class pg_extension
	pg_proc pg_type pg_namespace pg_authid))
{
	$shadows .= "CREATE TEMP VIEW $name AS SELECT 'x' AS name, pg_temp.ran() AS id;\n";
}
my %shadow_functions = ('min(int8)' => 'int8', 'count(text)' => 'int8', 'jsonb_array_elements_text(jsonb)' => 'text', 'jsonb_array_elements(jsonb)' => 'jsonb',
	'jsonb_each_text(jsonb)' => 'text', 'format(text, text)' => 'text', 'octet_length(bytea)' => 'int4', 'clock_timestamp()' => 'timestamptz', 'texteq(text, text)' => 'bool',
	'ag_info(text)' => 'jsonb', 'ag_model_right(text, text)' => 'text', 'ag_version()' => 'text', 'ag_learning_curves(text)' => 'text', 'min(anyelement)' => 'text');
for my $schema ('pg_temp', 'lair')
{
	for my $function (sort keys %shadow_functions)
	{
		$shadows .= "CREATE FUNCTION $schema.$function RETURNS pg_catalog.$shadow_functions{$function} LANGUAGE plpgsql AS \$\$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN NULL; END \$\$;\n"
		  if $function !~ /^min/;
	}
	$shadows .= "CREATE FUNCTION $schema.step(pg_catalog.int8, pg_catalog.int8) RETURNS pg_catalog.int8 LANGUAGE plpgsql AS \$\$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN 1; END \$\$;
		CREATE AGGREGATE $schema.min(pg_catalog.int8) (SFUNC = $schema.step, STYPE = pg_catalog.int8, INITCOND = '0');\n";
}
for my $type (qw(text int4 int8 uuid name float8))
{
	$shadows .= "CREATE FUNCTION lair.eq(pg_catalog.$type, pg_catalog.$type) RETURNS pg_catalog.bool LANGUAGE plpgsql AS \$\$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN true; END \$\$;
		CREATE OPERATOR lair.= (FUNCTION = lair.eq, LEFTARG = pg_catalog.$type, RIGHTARG = pg_catalog.$type);
		CREATE OPERATOR lair.<> (FUNCTION = lair.eq, LEFTARG = pg_catalog.$type, RIGHTARG = pg_catalog.$type);\n";
}
my $prelude = "\\set VERBOSITY terse\nSET client_min_messages = error;\n$shadows RESET client_min_messages;\n";
# whoever may create in the extension's schema adds functions that fit its own calls better, unless those give all arguments
try('mallory', q{
	CREATE FUNCTION lair.ran() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN true; END $$;
	CREATE FUNCTION public.ag_leaderboard(text) RETURNS TABLE (model text, o bigint) LANGUAGE sql AS $$ SELECT 'x', 1 WHERE lair.ran() $$;
	CREATE FUNCTION public.ag_feature_importance(text, text, int, int) RETURNS TABLE (feature text, importance float8, stddev float8, p_value float8) LANGUAGE sql AS $$ SELECT 'x', 1.0, 1.0, 1.0 WHERE lair.ran() $$;
	CREATE FUNCTION public.ag_info(varchar) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb WHERE lair.ran() $$;
	GRANT USAGE ON SCHEMA lair TO PUBLIC;});
for my $call ("(SELECT string_agg(s::text, ' ') FROM ag_fit_summary('secret') s)", "ag_report('secret', 'ward.d')", "(SELECT count(*) FROM ag_model_failures('secret'))", "(SELECT count(*) FROM ag_models)")
{
	unlike(try($superuser, "SELECT $call"), qr/ran as|ERROR/, "no overload is taken for ag_pg's: $call");
}
try('mallory', 'DROP FUNCTION public.ag_leaderboard(text); DROP FUNCTION public.ag_feature_importance(text, text, int, int); DROP FUNCTION public.ag_info(varchar); DROP FUNCTION lair.ran()');
my $calls = join '', map { "SELECT ward.$_() IS NULL;\n" } qw(report summary failures views work rest fit);
$out = try('mallory', "$prelude$calls");
unlike($out, qr/ran as/, 'temporary objects are not taken for PostgreSQL\'s or ag_pg\'s');
is(() = $out =~ /^f$/mg, 7, 'and all seven functions work') or diag($out);
# a definer's function whose own text isn't schema-qualified is its author's fault: so called by qualified names
try('alice', q{CREATE FUNCTION ward.all() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
	PERFORM public.ag_report('secret'::pg_catalog.text, 'ward.d'::pg_catalog.text); PERFORM public.ag_fit_summary('secret'::pg_catalog.text);
	PERFORM public.ag_model_failures('secret'::pg_catalog.text); PERFORM public.ag_set_decision_threshold('secret', 0.5); PERFORM public.ag_activate('secret', 1);
	PERFORM public.ag_delete_members('secret'::pg_catalog.text, '{best}', NULL, true); PERFORM v FROM public.ag_models v; PERFORM v FROM public.ag_features v; PERFORM v FROM public.ag_jobs v;
	PERFORM public.ag_grant('secret'::pg_catalog.text, 'reader'); PERFORM public.ag_doctor(); RETURN 'done'; END $$; GRANT EXECUTE ON FUNCTION ward.all() TO mallory});
$out = try('mallory', "$prelude SET search_path = lair, pg_temp, pg_catalog, public;\nSELECT ward.all();\nSELECT ward.rest();\n");
unlike($out, qr/ran as/, 'nor objects in front of pg_catalog on the path');
is(() = $out =~ /^done$/mg, 2, 'and both work') or diag($out);

# ---- types, casts, views and policies with side effects as data: they run as the caller, who can write nothing meanwhile

try('mallory', q{
	CREATE TABLE lair.ran (who text); GRANT ALL ON lair.ran TO PUBLIC; GRANT USAGE ON SCHEMA lair TO PUBLIC;
	CREATE FUNCTION lair.note(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		RAISE WARNING '% ran as %', $1, current_user;
		BEGIN SET transaction_read_only = off; EXCEPTION WHEN OTHERS THEN NULL; END;
		BEGIN INSERT INTO lair.ran VALUES (current_user); EXCEPTION WHEN read_only_sql_transaction THEN NULL; END;
		BEGIN GRANT mallory TO alice; EXCEPTION WHEN OTHERS THEN NULL; END;
		RETURN true; END $$;
	CREATE DOMAIN lair.odd AS int CHECK (lair.note('domain'));
	CREATE TYPE lair.pair AS (a int, b int);
	CREATE FUNCTION lair.to_number(lair.pair) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.note('cast'); RETURN ($1).a; END $$;
	CREATE CAST (lair.pair AS float8) WITH FUNCTION lair.to_number(lair.pair) AS IMPLICIT;
	CREATE TABLE lair.d AS SELECT i::lair.odd AS o, i % 9 AS x, (i, 1)::lair.pair AS p, i * 2.0 AS y FROM generate_series(1, 60) i;
	ALTER TABLE lair.d ENABLE ROW LEVEL SECURITY;
	CREATE POLICY odd ON lair.d USING (x > 2 OR lair.note('policy'));
	CREATE INDEX ON lair.d ((lair.note('index'))) WHERE false;
	CREATE VIEW lair.v AS SELECT o, x, p::float8 AS p, y FROM lair.d WHERE x > 4 OR lair.note('view');
	GRANT SELECT ON lair.d, lair.v TO PUBLIC;});
my $before = try('mallory', 'SELECT count(*) FROM lair.ran');
for my $call (q{ag_fit('lair.v', 'y', '{"name": "odd", "verbosity": 0, "hyperparameters": {"LR": {}}}')}, q{ag_evaluate('odd', 'lair.v')}, q{ag_predict_table('odd', 'lair.v')},
	q{ag_report('odd', 'lair.v')}, q{ag_drift('odd', 'lair.v')}, q{ag_leaderboard('odd', 'SELECT * FROM lair.v')}, q{ag_feature_importance('odd', 'lair.v')},
	q{ag_partial_dependence('odd', 'lair.v', 'x')})
{
	my $out = try('alice', "SELECT count(*) FROM $call");
	unlike($out, qr/ERROR|ran as (?!alice)/, "side effects run as the caller: $call");
}
is(try('mallory', 'SELECT count(*) FROM lair.ran'), $before, 'and write nothing');
for my $call (q{ag_fit('SELECT lair.nested() AS x, 1 AS y', 'y', '{"name": "n"}')}, q{ag_evaluate('odd', 'SELECT lair.nested() AS x, 1 AS o, 1.0 AS p, 1 AS y')})
{
	try('mallory', q{CREATE OR REPLACE FUNCTION lair.nested() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM ag_drop('odd'); RETURN 1; END $$});
	refuses('alice', "SELECT $call", qr/read-only transaction/, "nor change models meanwhile: $call");
}
# a value whose check predicts with the same model, and itself
try('alice', q{CREATE FUNCTION ward.again(int) RETURNS boolean LANGUAGE sql AS $$ SELECT ag_predict('odd', jsonb_build_object('x', $1, 'o', 1, 'p', 1)) IS NOT NULL $$;
	CREATE DOMAIN ward.deep AS int CHECK (ward.again(VALUE));
	CREATE FUNCTION ward.endless(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN ag_predict('odd', jsonb_build_object('x', $1, 'o', 1, 'p', 1), NULL::ward.bottomless) IS NULL; END $$;
	CREATE DOMAIN ward.bottomless AS float8; ALTER DOMAIN ward.bottomless ADD CHECK (VALUE IS NULL OR ward.endless(1))});
like(try('alice', q{SELECT count(ag_predict('odd', s, NULL::ward.deep)) FROM (SELECT i AS x, i AS o, i AS p FROM generate_series(1, 5) i) s}), qr/^5\n/, 'a check that predicts');
like(try('alice', q{SELECT ag_predict('odd', '{"x": 1, "o": 1, "p": 1}'::jsonb, NULL::ward.bottomless)}), qr/stack depth limit|ERROR|^\n/, 'and one without end');

# ---- stored queries: who runs them must be whom they were stored for

$node->safe_psql('theirs', 'CREATE ROLE clinic; GRANT clinic TO alice, mallory; GRANT CREATE, USAGE ON SCHEMA lair TO clinic');
try('mallory', q{CREATE FUNCTION lair.number() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN 1; END $$; GRANT EXECUTE ON FUNCTION lair.number() TO PUBLIC;
	SELECT ag_fit('SELECT i + lair.number() AS x, i * 2.0 AS y FROM generate_series(1, 60) i', 'y', '{"name": "bait", "verbosity": 0, "hyperparameters": {"LR": {}}}');
	SELECT ag_fit('SELECT i AS x, i * 2.0 AS y FROM generate_series(1, 60) i', 'y', '{"name": "bait2", "verbosity": 0, "hyperparameters": {"LR": {}},
		"tuning_data": "SELECT i + lair.number() AS x, i * 2.0 AS y FROM generate_series(1, 60) i"}');
	SELECT ag_grant('bait2', 'alice', 'inspect'); SET ROLE clinic; SELECT ag_fit('SELECT i + lair.number() AS x, i * 2.0 AS y FROM generate_series(1, 60) i', 'y', '{"name": "bait3", "verbosity": 0, "hyperparameters": {"LR": {}}}')});
$out = try($superuser, q{SELECT ag_refresh('bait')});
like($out, qr/must be role "mallory" to refresh model "bait"/, 'a superuser does not run another\'s query');
unlike($out, qr/ran as/, 'not a row of it');
like(try($superuser, q{SET ROLE mallory; SELECT ag_refresh('bait', 'always')}), qr/^bait\@\d$/m, 'but as that role');
$out = try($superuser, q{SELECT ag_refit_full('bait')});
like($out, qr/must be role "mallory" to retrain model "bait"/, 'nor does he to train it once more');
unlike($out, qr/ran as/, 'not a row of it either');
like(try($superuser, q{SET ROLE mallory; SELECT ag_refit_full('bait')}), qr/^bait\@\d$/m, 'but as that role');
unlike(try('alice', q{SELECT ag_refresh('bait3')}), qr/ran as/, 'nor does a member that of a group');
like(try('alice', q{SET ROLE clinic; SELECT ag_refresh('bait3')}), qr/ran as clinic/, 'but as the group');
$out = try('alice', q{SELECT ag_fit('SELECT i AS x, i * 2.0 AS y FROM generate_series(1, 60) i', 'y', '{"replay": "bait2", "name": "mine", "verbosity": 0}')});
like($out, qr/must be role "mallory" to repeat/, 'nor is tuning data of others read by repeating a fit');
unlike($out, qr/ran as/, 'not a row of it, either');

# ---- a job's query runs as who submitted it, and can't become whose session that was; settings of resources

try('mallory', q{CREATE FUNCTION lair.become() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
		BEGIN RESET ROLE; RAISE EXCEPTION 'became %', current_user USING ERRCODE = 'data_exception'; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
		BEGIN SET SESSION AUTHORIZATION DEFAULT; RAISE EXCEPTION 'became %', current_user USING ERRCODE = 'data_exception'; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
		BEGIN PERFORM set_config('role', 'none', false); RAISE EXCEPTION 'became %', current_user USING ERRCODE = 'data_exception'; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
		IF current_user <> 'mallory' THEN RAISE EXCEPTION 'is %', current_user; END IF;
		RETURN 1; END $$;
	CREATE FUNCTION lair.submit(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		PERFORM public.ag_fit_async('SELECT i + lair.become() AS x, i * 2.0 AS y FROM generate_series(1, 60) i', 'y', '{"name": "climb", "verbosity": 0, "hyperparameters": {"LR": {}}}'); RETURN $1; END $$;
	CREATE TABLE lair.trap AS SELECT 1 AS x; CREATE INDEX ON lair.trap (lair.submit(x))});
$out = try($superuser, q{SET ROLE mallory; SELECT ag_fit_async('SELECT i + lair.become() AS x, i * 2.0 AS y FROM generate_series(1, 60) i', 'y', '{"name": "climb", "verbosity": 0, "hyperparameters": {"LR": {}}}');
	RESET ROLE; REINDEX TABLE lair.trap; ANALYZE lair.trap});
gives('mallory', q{SELECT count(*) > 1, bool_and(ag_wait(id, 30) = 'succeeded') FROM ag_jobs}, 't|t', 'jobs of a superuser\'s session that run as mallory stay mallory') or diag($out, try('mallory', 'SELECT ag_job_log(id) FROM ag_jobs'));
for my $setting ('sandbox = off', 'max_fits = 1000', 'max_jobs = 1000', "memory_limit = '1TB'", 'num_cpus = 4000', 'num_gpus = 0', 'gpu_memory_fraction = 1', 'log_fits = on', 'job_retention = 0')
{
	refuses('mallory', "SELECT ag_version(); SET ag_pg.$setting", qr/permission denied to set parameter/, "not for everybody: $setting");
	my ($name) = $setting =~ /^(\w+)/;
	is(try('mallory', "SET client_min_messages = error; SET ag_pg.$setting; DO 'BEGIN PERFORM ag_version(); END'; SHOW ag_pg.$name"), try('mallory', "DO 'BEGIN PERFORM ag_version(); END'; SHOW ag_pg.$name"), "nor before the library is there: $setting");
}

# ---- hostile options and imports

my %options = ('1 MB of name' => [ q~jsonb_build_object('name', repeat('x', 1000000))~, qr/takes a text of 1 to 63 bytes/ ], '1 MB of an option' => [ q~jsonb_build_object(repeat('k', 1000000), (SELECT jsonb_object_agg('k' || i, i) FROM generate_series(1, 10000) i))~, qr/is too long, or nested/ ],
	'1 MB of a value' => [ q~jsonb_build_object('eval_metric', repeat('m', 1000000))~, qr/ERROR/ ],
	'10,000 entries' => [ q~(SELECT jsonb_object_agg('k' || i, i) FROM generate_series(1, 10000) i)~, qr/ERROR/ ],
	'a million entries' => [ q~jsonb_build_object('hyperparameters', (SELECT jsonb_agg(i) FROM generate_series(1, 1000000) i))~, qr/too many values|ERROR/ ],
	'depth 3000' => [ q~(repeat('{"a":', 3000) || '1' || repeat('}', 3000))::jsonb~, qr/ERROR/ ],
	'arrays of depth 3000' => [ q~jsonb_build_object('hyperparameters', (repeat('[', 3000) || repeat(']', 3000))::jsonb)~, qr/ERROR/ ],
	'a scalar' => [ q~'7'::jsonb~, qr/must be a JSON object/ ], 'an array' => [ q~'[]'::jsonb~, qr/must be a JSON object/ ],
	'a number beyond all bounds' => [ q~'{"time_limit": 1e100000}'::jsonb~, qr/ERROR/ ], 'NaN as text' => [ q~'{"time_limit": "NaN"}'::jsonb~, qr/ERROR/ ],
	'a zone that is a path' => [ q~'{"time_zone": "../../../../etc/passwd"}'::jsonb~, qr/there is no time zone/ ],
	'tuning data that write' => [ q~'{"tuning_data": "WITH a AS (DELETE FROM ward.ran RETURNING 1) SELECT 1"}'::jsonb~, qr/only reads|ERROR/ ]);
refuses('alice', "SELECT ag_fit('ward.d', 'y', $options{$_}[0])", $options{$_}[1], "options: $_") for sort keys %options;
refuses('alice', "SELECT ag_fit('$_', 'y', '{\"name\": \"no\"}')", qr/ERROR/, "data: $_")
  for 'SELECT 1 AS x, 2 AS y; DROP TABLE ward.d', 'SELECT 1 AS x, 2 AS y INTO ward.e', 'TABLE ward.d FOR UPDATE', 'COPY ward.d TO STDOUT', 'ward.d; DROP TABLE ward.d', '"', '', 'select',
  'WITH a AS (INSERT INTO ward.ran VALUES (1) RETURNING 1) SELECT 1 AS x, 2 AS y', 'EXPLAIN SELECT 1', '/*', 'pg_catalog.pg_authid', 'ag_member_part_pkey';
my %models = ('nothing' => q~''~, 'brackets' => q~repeat('[', 100000)~, 'objects' => q~repeat('{"learner":', 100000)~, 'a long number' => q~'{"learner": ' || repeat('9', 100000)~,
	'a long string' => q~'{"' || repeat('x', 1000000) || '": 1}'~, 'half an escape' => q~'{"a\u'~, 'huge counts' => q~'{"version":[2,0,0],"learner":{"learner_model_param":{"base_score":"0.5","num_class":"2147483647","num_feature":"2147483647"},"objective":{"name":"multi:softprob"},"gradient_booster":{"name":"gbtree","model":{"trees":[],"tree_info":[],"gbtree_model_param":{"num_trees":"99999999999"}}}}}'~,
	'text of a million trees' => q~E'tree\nversion=v4\nnum_class=1000000\nnum_tree_per_iteration=1000000\nmax_feature_idx=2147483647\nfeature_names=a\n\nTree=0\nnum_leaves=2147483647\n'~);
for my $format ('xgboost_json', 'lightgbm_text', 'onnx', '../../etc/passwd')
{
	refuses('alice', "SELECT ag_import('no', $models{$_}, '$format')", qr/ERROR/, "import of $_ as $format") for sort keys %models;
}
my $twice = '{"learner":{"feature_names":["x","y"],"feature_names":["a","b"],"gradient_booster":{"name":"gbtree","model":{"tree_info":[0,0],"tree_info":[0],"trees":[{"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[1.5],"default_left":[0]}]}},"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"2"},"objective":{"name":"reg:squarederror"}},"version":[2,0,0]}';
like(try('alice', "SELECT ag_import('twice', '$twice', 'xgboost_json'); SELECT ag_info('twice') -> 'features', ag_drop('twice')"), qr/^\["a", "b"\]\|1$/m, 'import of lists that stand there twice');
refuses('alice', q{SELECT ag_import('no', decode(repeat('00ff', 1000), 'hex'), 'xgboost_json')}, qr/ERROR/, 'import of bytes');
gives('alice', q{SELECT count(*) FROM ag_models WHERE name IN ('no', 'n', 'mine', 'copy')}, '0', 'none of it left a model');
is(boot(), $boot, 'the server never went down');

# ---- the extension's owner, who is no superuser, forges rows, and puts other relations where his tables were

try('keeper', q{CREATE EXTENSION ag_pg; GRANT CREATE ON SCHEMA public TO alice, mallory;
	CREATE FUNCTION number() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN 1; END $$}, 'mine');
try('alice', qq{CREATE TABLE d AS SELECT i % 40 AS x, 'k' || i % 3 AS k, CASE WHEN i % 40 > 20 THEN 'ill' ELSE 'well' END AS y, i % 40 * 2.0 AS z FROM generate_series(1, 300) i;
	SELECT ag_fit('SELECT x, k, y FROM d', 'y', '{"name": "m", $quick}'); SELECT ag_fit('SELECT x, k, z FROM d', 'z', '{"name": "r", $quick}'); GRANT ALL ON d TO PUBLIC;}, 'mine');
my $uses = join '', map { my $m = $_; my $l = $m eq 'm' ? 'y' : 'z'; map { "SELECT count(s) FROM $_ s;\n" }
	  ("(SELECT ag_predict_proba('$m', d) FROM d LIMIT 3)", "(SELECT ag_predict('$m', d) FROM d LIMIT 3)", "(SELECT ag_predict_interval('$m', d) FROM d LIMIT 3)", "ag_info('$m')", "ag_leaderboard('$m', 'd')", "ag_report('$m', 'd')",
		"ag_evaluate('$m', 'd')", "ag_threshold_metrics('$m', 'd')", "ag_confusion_matrix('$m', 'd')", "ag_feature_importance('$m', 'd', 50, 1)", "ag_partial_dependence('$m', 'd', 'x')", "ag_drift('$m', 'd')",
		"ag_learning_curves('$m')", "ag_predict_oof('$m')", "ag_fit_summary('$m')", "ag_model_failures('$m')", "ag_explain('$m', '{\"x\": 1}'::jsonb)", "ag_predict_table('$m', 'd')",
		"ag_delete_members('$m', '{best}', dry_run => true)", "ag_export('$m/GBM', 'json')", "ag_models", "ag_features", "ag_jobs") } qw(m r);
like(try($superuser, $uses, 'mine'), qr/^3\n/, 'all of it works at first') or diag(try($superuser, $uses, 'mine'));

# what stays of it is undone
sub forged_for_now
{
	my ($what, $sql) = @_;
	my $uses = $what eq 'policies' ? $uses =~ s/^.*FROM ag_(?:models|features|jobs) s;$//mgr : $uses;    # a view of his runs what he put there
	my $out = try($superuser, "BEGIN; SET LOCAL ROLE keeper; $sql; RESET ROLE;\n" . ($uses =~ s/^(.*)$/SAVEPOINT s; $1 ROLLBACK TO s;/mgr) . "ROLLBACK; SELECT 'goes on'", 'mine');
	like($out, qr/goes on/, "forged: $what");
	unlike($out, qr/ran as/, "forged: $what: nothing of his runs") ;
	return;
}
for my $forgery ([ 'a metric of numbers for classes', q{UPDATE ag_predictor SET eval_metric = CASE name WHEN 'm' THEN 'rmse' ELSE 'roc_auc' END} ],
	[ 'a metric of quantiles', q{UPDATE ag_predictor SET eval_metric = 'pinball_loss'} ],
	[ 'no metric', q{UPDATE ag_predictor SET eval_metric = 'nonsense'} ], [ 'another problem', q{UPDATE ag_predictor SET problem_type = CASE name WHEN 'm' THEN 'quantile' ELSE 'binary' END} ],
	[ 'another label', q{UPDATE ag_predictor SET label = 'x'} ], [ 'a number for a label', q{UPDATE ag_predictor SET label = '"'} ],
	[ 'values of no meaning', q{UPDATE ag_predictor SET rows = -9223372036854775808, rows_left_out = 9223372036854775807, fit_time = 'NaN', score_val = '-Infinity', time_limit = 'Infinity', created_at = '-infinity'} ],
	[ 'JSON of other shapes', q{UPDATE ag_predictor SET classes = '{"a": [1]}', plan = '[1, {}]', warnings = '7', options = '"x"'} ],
	[ 'failures of other shapes', q{UPDATE ag_predictor SET plan = '{"failures": {"a": 1}, "replay": [1]}'} ],
	[ 'a threshold that is none', q{ALTER TABLE ag_predictor DROP CONSTRAINT ag_predictor_decision_threshold_check; UPDATE ag_predictor SET decision_threshold = 'Infinity'} ],
	[ 'the best model a child of none', q{UPDATE ag_predictor SET best_model = ''} ],
	[ 'a cycle of members', q{UPDATE ag_member SET inputs = '[{"model": "WeightedEnsemble_L2", "weight": 1}]', family = 'ENS_WEIGHTED'} ],
	[ 'inputs by the thousand', q{UPDATE ag_member SET inputs = (SELECT jsonb_agg(jsonb_build_object('model', 'GBM', 'weight', 1)) FROM generate_series(1, 20000)) WHERE inputs IS NOT NULL} ],
	[ 'stackers of themselves', q{UPDATE ag_member SET inputs = '[{"model": "GBM", "weight": 0.5}, {"model": "KNN", "weight": 0.5}]', stack_level = -2147483648, fold = -1} ],
	[ 'temperatures', q{UPDATE ag_member SET temperature = '-Infinity', num_gpus = 'NaN', num_cpus = -1, fit_order = 0, score_val = 'NaN', predict_time = 'NaN'} ],
	[ 'shifts of quantiles', q{UPDATE ag_member SET quantile_shifts = '[1e308, "a", null, [], 5]'} ],
	[ 'endless shifts of quantiles', q{UPDATE ag_member SET quantile_shifts = (SELECT jsonb_agg(i) FROM generate_series(1, 100000) i)} ],
	[ 'a temperature next to nothing', q{UPDATE ag_member SET temperature = 1e-320} ],
	[ 'histories', q{UPDATE ag_member SET history = '{"metric": "x", "iteration": [1, "a", -1, 1e300, null], "val": []}'} ], [ 'a history that is none', q{UPDATE ag_member SET history = '[]'} ],
	[ 'a pipeline of another', q{UPDATE ag_member_part p SET data = o.data, checksum = o.checksum FROM ag_member_part o WHERE p.member = 0 AND o.member = 0 AND o.predictor <> p.predictor} ],
	[ 'models of another', q{UPDATE ag_member_part p SET data = o.data, checksum = o.checksum FROM ag_member_part o WHERE p.member = o.member AND p.member > 0 AND o.predictor <> p.predictor} ],
	[ 'a model for a pipeline', q{UPDATE ag_member_part p SET data = o.data, checksum = o.checksum FROM ag_member_part o WHERE p.member = 0 AND o.member = 1 AND o.predictor = p.predictor} ],
	[ 'out-of-fold predictions of another', q{UPDATE ag_member_part p SET data = o.data, checksum = o.checksum FROM ag_member_part o WHERE p.member = 2147483647 AND o.member = p.member AND o.predictor <> p.predictor} ],
	[ 'a part far away', q{UPDATE ag_member_part SET part = 2147483647} ],
	[ 'features', q{UPDATE ag_predictor_feature SET name = repeat('<script>', 1000), type = '', kind = '', min = 'NaN', categories = '7', became = NULL} ],
	[ 'tables without rows', q{DELETE FROM ag_member; DELETE FROM ag_predictor_feature; DELETE FROM ag_member_part} ],
	[ 'a view for a table', q{ALTER TABLE ag_predictor RENAME TO gone; CREATE VIEW ag_predictor AS SELECT * FROM gone WHERE number() = 1} ],
	[ 'a view for members', q{ALTER TABLE ag_member RENAME TO gone; CREATE VIEW ag_member AS SELECT * FROM gone WHERE number() = 1} ],
	[ 'a partitioned table', q{ALTER TABLE ag_member_part RENAME TO gone; CREATE TABLE ag_member_part (LIKE gone) PARTITION BY LIST (member)} ],
	[ 'an index of another table', q{ALTER TABLE ag_member DROP CONSTRAINT ag_member_pkey; CREATE TABLE other AS SELECT m.* FROM ag_member m, generate_series(1, 200); CREATE INDEX ag_member_pkey ON other (predictor, ordinal)} ],
	[ 'an index of other columns', q{ALTER TABLE ag_member DROP CONSTRAINT ag_member_pkey; CREATE INDEX ag_member_pkey ON ag_member (name)} ],
	[ 'an index of an expression', q{ALTER TABLE ag_member DROP CONSTRAINT ag_member_pkey; CREATE INDEX ag_member_pkey ON ag_member (length(name), ordinal)} ],
	[ 'a partial index', q{ALTER TABLE ag_predictor DROP CONSTRAINT ag_predictor_name_version_key; CREATE INDEX ag_predictor_name_version_key ON ag_predictor (name, version) WHERE name > 'z'} ],
	[ 'policies', q{ALTER TABLE ag_predictor ENABLE ROW LEVEL SECURITY; ALTER TABLE ag_predictor FORCE ROW LEVEL SECURITY; CREATE POLICY p ON ag_predictor USING (number() = 1)} ])
{
	forged_for_now(@$forgery);
}
is(boot(), $boot, 'forged tables bring no server down');

refuses('keeper', "ALTER EXTENSION ag_pg DROP TABLE ag_job_order", qr/must be owner of table ag_job_order/, 'orders are not his to take out of the extension', 'mine');
refuses('keeper', "CREATE OR REPLACE FUNCTION ag_info(model text) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb'", qr/must be owner of function ag_info/, 'nor functions his to replace', 'mine');
refuses('keeper', "CREATE OR REPLACE FUNCTION ag_job_state(id bigint, owner text, state text, home text) RETURNS text LANGUAGE sql AS 'SELECT NULL'", qr/must be owner of function ag_job_state/, 'none of them', 'mine');

# a query that he stores for others is not theirs
try('keeper', q{UPDATE ag_predictor SET data = 'SELECT x + number() AS x, y FROM d' WHERE name = 'm'; UPDATE ag_predictor SET owner = '} . $superuser . q{', data = 'SELECT x + number() AS x, z FROM d' WHERE name = 'r'}, 'mine');
for my $user ([ 'alice', 'm' ], [ $superuser, 'r' ])
{
	my $out = try($user->[0], "SELECT ag_refresh('$user->[1]', 'always')", 'mine');
	like($out, qr/can be written by role "keeper"/, "$user->[0] runs no query that keeper could have written");
	unlike($out, qr/ran as/, "not a row of it, $user->[0]");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_roles WHERE rolname IN ('keeper', 'alice', 'reader', 'mallory') AND (rolsuper OR rolcreaterole)}), '0', 'nobody became more than he was');
$node->stop;
done_testing();
