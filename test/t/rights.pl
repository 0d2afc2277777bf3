# Every function of the extension, called by every kind of role: who owns the models, who may inspect, who may predict, who may nothing, and who could
# become the owner but hasn't. Each gives what it is to give or says no; a function that is on no list here fails the test, so that none is forgotten.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('rights');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nag_pg.num_cpus = 2\nshared_preload_libraries = 'ag_pg'\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN; CREATE ROLE looker LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE mallory LOGIN; CREATE ROLE shy LOGIN NOINHERIT IN ROLE alice;
	CREATE EXTENSION ag_pg;
	CREATE SCHEMA ward AUTHORIZATION alice; CREATE SCHEMA hall; GRANT USAGE, CREATE ON SCHEMA hall TO PUBLIC;
	CREATE TABLE hall.people (who text, x int, y text); GRANT SELECT ON hall.people TO PUBLIC;});

# What statements print, and what they complain of.
sub run_as
{
	my ($user, $sql) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0, extra_params => [ '-U', $user ]);
	return ($out, $err);
}
sub try { my ($out, $err) = run_as(@_); return "$out\n$err"; }

my $models = '"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 10}, "KNN": {}, "LR": {}}';
my $slow = '"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 1000000, "learning_rate": 0.00001}}, "ag_args_fit": {"early_stop": null}';
like(try('alice', qq{
	CREATE TABLE ward.d AS SELECT 'patient ' || i % 40 AS who, i % 40 AS x, 4711.25 + i % 40 AS code, CASE WHEN i % 40 > 20 THEN 'ill' ELSE 'well' END AS y FROM generate_series(1, 300) i;
	SELECT ag_fit('SELECT who, x, y FROM ward.d', 'y', '{"name": "secret", $models}');
	SELECT ag_fit('SELECT who, x, y FROM ward.d', 'y', '{"name": "secret", $models}');
	SELECT ag_fit('SELECT who, x, code FROM ward.d', 'code', '{"name": "amount", $models}');
	SELECT ag_fit('SELECT who, x, code FROM ward.d', 'code', '{"name": "spread", "problem_type": "quantile", $models}');
	SELECT ag_grant(m, 'reader'), ag_grant(m, 'looker', 'inspect') FROM unnest('{secret,amount,spread}'::text[]) m;
	SELECT 'ready'}), qr/^ready$/m, 'models and rights') or BAIL_OUT('no models');
my ($done) = try('alice', qq{SELECT ag_fit_async('SELECT x, code FROM ward.d', 'code', '{"name": "job", $models}')}) =~ /^(\d+)$/m;
like(try('alice', "SELECT ag_wait($done, 60)"), qr/^succeeded$/m, 'a job');

# ---- the calls

my %calls = (any => [], predict => [], inspect => [], owner => [], superuser => [], job => []);
my %row = (record => q{(SELECT s FROM (SELECT 'x'::text AS who, 3 AS x) s)}, jsonb => q{'{"who": "x", "x": 3}'::jsonb}, text => q{'{"who": "x", "x": 3}'::text});
for my $row (map { $row{$_} } sort keys %row)
{
	push @{ $calls{predict} }, "ag_predict('amount', $row)", "ag_predict('amount', $row, NULL::int)", "ag_predict('amount\@1/LR', $row)", "ag_predict_class('secret', $row)",
	  "ag_predict_class('secret/KNN', $row)", "ag_predict_proba('secret', $row)", "ag_predict_proba('secret\@1', $row, 'ill'::text)", "ag_predict_quantiles('spread', $row)",
	  "ag_predict_interval('amount', $row)", "ag_predict_interval('amount', $row, 0.5)", "ag_explain('secret', $row)", "ag_explain('secret', $row, 'ill'::text)";
}
my %own = (
	secret => q{'SELECT ''x'' AS who, i AS x, CASE WHEN i > 20 THEN ''ill'' ELSE ''well'' END AS y FROM generate_series(1, 40) i'},
	amount => q{'SELECT ''x'' AS who, i AS x, i * 1.5 AS code FROM generate_series(1, 40) i'});
for my $model ('secret', 'amount')
{
	push @{ $calls{predict} }, map { "$_" } "ag_info('$model')", "ag_leaderboard('$model')", "ag_leaderboard('$model', $own{$model})", "ag_learning_curves('$model')", "ag_fit_summary('$model')",
	  "ag_model_failures('$model')", "ag_report('$model')", "ag_report('$model', $own{$model})", "ag_evaluate('$model', $own{$model})", "ag_predict_table('$model', $own{$model})",
	  "ag_feature_importance('$model', $own{$model}, 40, 1)", "ag_partial_dependence('$model', $own{$model}, 'who')", "ag_prewarm('$model')";
	push @{ $calls{inspect} }, "ag_drift('$model', $own{$model})", "ag_predict_oof('$model')", "ag_export('$model/GBM', 'json')", "ag_export_bytea('$model/GBM', 'json')",
	  "ag_fit($own{$model}, '" . ($model eq 'secret' ? 'y' : 'code') . "', '{\"replay\": \"$model\", \"name\": \"copy\", \"verbosity\": 0}')";
}
push @{ $calls{predict} }, map { "ag_${_}('secret', $own{secret})" } qw(confusion_matrix roc_curve pr_curve calibration lift threshold_metrics);
push @{ $calls{predict} }, "ag_predict_columns('amount', 'ag_predict(text, record)'::regprocedure, '{who,x}', 'x'::text, 3)", "ag_predict_class_columns('secret', 'ag_predict_class(text, record)'::regprocedure, '{who,x}', 'x'::text, 3)",
  "ag_predict_proba_columns('secret', 'ag_predict_proba(text, record)'::regprocedure, '{who,x}', 'x'::text, 3)", "ag_predict_quantiles_columns('spread', 'ag_predict_quantiles(text, record)'::regprocedure, '{who,x}', 'x'::text, 3)",
  "ag_create_function('secret', 'hall.f', 'hall.people')";
push @{ $calls{owner} }, "ag_drop('secret')", "ag_drop('secret\@1')", "ag_set_decision_threshold('secret', 0.1)", "ag_activate('secret', 1)", "ag_activate('secret', NULL)", "ag_refresh('secret')", "ag_refit_full('secret')",
  "ag_delete_members('secret', '{best}')", "ag_delete_members('secret', models_to_delete => '{KNN}', dry_run => true)", "ag_rename('secret', 'other')", "ag_grant('secret', 'mallory')", "ag_grant('secret', 'public', 'inspect')",
  "ag_revoke('secret', 'reader')", "ag_revoke('secret', 'looker', 'inspect')";
push @{ $calls{job} }, "ag_wait($done)", "ag_wait($done, 0)", "ag_cancel($done)", "ag_job_log($done)";
push @{ $calls{superuser} }, 'ag_stats_reset()';
push @{ $calls{any} }, 'ag_version()', 'ag_options()', 'ag_families()', "ag_in_test('a'::text, 0.5)", "ag_in_test(7::bigint, 0.5)", "ag_in_test('00000000-0000-0000-0000-000000000000'::uuid, 0.5)", 'ag_stats_read()', 'ag_running_fits()',
  "ag_job_seconds(now(), NULL, NULL, NULL)", 'ag_gpus()', 'ag_doctor()', "ag_fit($own{amount}, 'code', '{\"name\": \"mine\", \"verbosity\": 0, \"hyperparameters\": {\"LR\": {}}}')",
  "ag_fit_async($own{amount}, 'code', '{\"name\": \"mine\", \"verbosity\": 0, \"hyperparameters\": {\"LR\": {}}}')", "ag_model_right('secret', 'alice')", "ag_job_state($done, 'alice', 'queued', 'x')",
  q{ag_import('mine', '{"learner":{"feature_names":["x"],"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"left_children":[-1],"right_children":[-1],"split_indices":[0],"split_conditions":[1.5],"default_left":[0]}]}},"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"1"},"objective":{"name":"reg:squarederror"}},"version":[2,0,0]}', 'xgboost_json')};

# none is forgotten; those that nobody calls, or not like that, have tests of their own below
my %elsewhere = map { $_ => 1 } qw(ag_predict_support ag_model_handler ag_model_validator ag_reassign);
my %listed = map { /^(\w+)\(/ ? ($1 => 1) : () } map { @$_ } values %calls;
my @there = split /\n/, $node->safe_psql('postgres', q{SELECT DISTINCT p.proname FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg') ORDER BY 1});
cmp_ok(scalar(@there), '>', 50, 'functions of the extension');
is(join(' ', grep { !$listed{$_} && !$elsewhere{$_} } @there), '', 'every one of them is listed');
is(join(' ', grep { my $f = $_; !grep { $f eq $_ } @there } keys %listed), '', 'and no other');
is($node->safe_psql('postgres', q{SELECT string_agg(p.oid::regprocedure::text, ' ') FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg') AND (p.prosecdef
		OR p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql') AND p.proconfig IS DISTINCT FROM '{"search_path=pg_catalog, pg_temp"}')}), '', 'none is a definer\'s, and those in SQL have their path');
is($node->safe_psql('postgres', q{SELECT string_agg(c.relname, ' ') FROM pg_depend d JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
	WHERE d.deptype = 'e' AND c.relkind IN ('r', 'S') AND EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner)}), '', 'no table is granted to anybody');

# ---- who gets what

# Of each call: what it printed and what it complained of, each in a transaction that is rolled back.
sub answers
{
	my ($user, $before, @list) = @_;
	my $n = 0;
	my ($out, $err) = run_as($user, $before . join '', map { ++$n; "\\echo --- $n\n\\warn --- $n\nBEGIN; SELECT count(s), string_agg(s::text, ' ') FROM (SELECT $_ AS s) s; ROLLBACK;\n" } @list);
	my @out = split /^--- \d+\n?/m, $out, -1;
	my @err = split /^(?:psql:<stdin>:\d+: )?--- \d+\n?/m, $err, -1;
	is(scalar(@out), @list + 1, "$user: all calls ran") or diag($out, $err);
	return map { [ $out[$_], $err[$_] // '' ] } 1 .. @list;
}
my $none = qr/ERROR:  model "\w+" does not exist/;
my $no_owner = qr/ERROR:  must be owner of model "\w+"/;
my $no_inspect = qr/ERROR:  permission denied/;
my $no_job = qr/ERROR:  job \d+ does not exist/;
my $no_super = qr/ERROR:  permission denied for function/;
my %refusals = (
	alice => { superuser => $no_super },
	looker => { owner => $no_owner, job => $no_job, superuser => $no_super },
	reader => { inspect => $no_inspect, owner => $no_owner, job => $no_job, superuser => $no_super },
	mallory => { predict => $none, inspect => $none, owner => $none, job => $no_job, superuser => $no_super },
	shy => { predict => $none, inspect => $none, owner => $none, job => $no_job, superuser => $no_super });
# words of the rows, also in hexadecimal and base64; what alice gave as data
my $private = qr/patient|ward\.d|70617469656e74|cGF0aWVudA/i;
for my $user (sort keys %refusals)
{
	for my $level (sort keys %calls)
	{
		my @list = @{ $calls{$level} };
		my @answers = answers($user, '', @list);
		for my $i (0 .. $#list)
		{
			my ($out, $err) = @{ $answers[$i] };
			my $refusal = $refusals{$user}{$level};
			$refusal ? like($err, $refusal, "$user is refused: $list[$i]") : unlike($err, qr/ERROR|server closed/, "$user may: $list[$i]");
			unlike("$out $err", $private, "$user sees no data: $list[$i]") if $user !~ /alice|looker/;
		}
	}
}

# who becomes the owner is the owner for as long as that lasts
my @as_alice = answers('shy', "SET ROLE alice;\n", "ag_predict_class('secret', $row{jsonb})", "ag_drop('secret')", "ag_job_log($done)");
unlike($_->[1], qr/ERROR/, 'a member without the role\'s rights has them after SET ROLE') for @as_alice;
my $ask = "ag_predict_class('secret', t) IS NOT NULL FROM (SELECT 'x' AS who, 3 AS x) t";
my $out = try('shy', qq{PREPARE ask AS SELECT $ask; EXECUTE ask; SET ROLE alice; EXECUTE ask; SELECT $ask; RESET ROLE; EXECUTE ask; SELECT $ask; BEGIN; SET LOCAL ROLE alice; EXECUTE ask; ROLLBACK; EXECUTE ask});
is(() = $out =~ /^t$/mg, 3, 'a prepared statement too') or diag($out);
is(() = $out =~ /$none/g, 4, 'and no longer, nor before') or diag($out);
my ($theirs) = try('shy', qq{SET ROLE alice; SELECT ag_fit_async('SELECT x, code FROM ward.d', 'code', '{"name": "shys", $models}')}) =~ /^(\d+)$/m;
like(try('shy', "SELECT ag_wait($theirs)"), $no_job, 'a job submitted as another role is that one\'s, in the same session too');
like(try('alice', "SELECT ag_wait($theirs, 60), owner FROM ag_jobs WHERE id = $theirs"), qr/^succeeded\|alice$/m, 'who can wait for it');

# ---- jobs within definers: they are the definer's, and run as him

try('alice', qq{CREATE FUNCTION hall.order_fit() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS
	\$\$ SELECT ag_fit_async('SELECT x, code, (SELECT current_user)::text AS who FROM ward.d', 'code', '{"name": "ordered", $models}') \$\$});
my ($ordered) = try('mallory', 'SELECT hall.order_fit()') =~ /^(\d+)$/m;
like(try('mallory', "SELECT ag_$_($ordered)"), $no_job, "mallory's call, alice's job: no ag_$_") for qw(wait cancel job_log);
like(try('mallory', 'SELECT count(*) FROM ag_jobs'), qr/^0$/m, 'nor is it seen');
like(try('alice', "SELECT ag_wait($ordered, 60); SELECT categories FROM ag_features WHERE model = 'ordered' AND feature = 'who'"), qr/^succeeded\n(\["alice"\])?$/m, 'it ran as alice');
like(try('mallory', q{CREATE FUNCTION hall.stop(bigint) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS $$ SELECT public.ag_cancel($1) $$; SELECT 'made'}), qr/^made$/m, 'and a definer of mallory\'s');
my ($running) = try('alice', qq{SELECT ag_fit_async('SELECT x, code FROM ward.d', 'code', '{"name": "long", $slow}')}) =~ /^(\d+)$/m;
like(try('alice', "SELECT hall.stop($running)"), $no_job, 'that alice calls has no right on her job');
ok($node->poll_query_until('postgres', "SELECT state = 'running' FROM ag_jobs WHERE id = $running"), 'while it runs');
my $pid = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'ag_pg job' AND query LIKE 'job%' LIMIT 1});
like(try('mallory', "SELECT pg_cancel_backend($pid)"), qr/permission denied|must be a (?:member|superuser)/i, 'nor has mallory on the process');
like(try('alice', "SELECT ag_wait($running, 0.1), ag_cancel($running)"), qr/^(running|queued)\|t$/m, 'alice has');

# ---- what is granted to everybody, and taken back; names that are kept and that are roles

like(try('alice', q{SELECT ag_grant('secret', 'public')}), qr/^\s*$/, 'granted to public');
like(try('mallory', "SELECT ag_predict_class('secret', $row{jsonb})"), qr/^(ill|well)$/m, 'everybody predicts');
like(try('mallory', q{SELECT ag_predict_oof('secret')}), $no_inspect, 'and no more');
unlike(try('mallory', q{SELECT * FROM ag_models; SELECT ag_info('secret')}), $private, 'sees no data either');
try('alice', q{SELECT ag_revoke('secret', 'public')});
like(try('mallory', "SELECT ag_predict_class('secret', $row{jsonb})"), $none, 'until that is taken back');
like(try('mallory', "SELECT ag_reassign('$_->[0]', '$_->[1]')"), qr/permission denied to reassign models|must be|ERROR/, "no ag_reassign of $_->[0] to $_->[1]")
  for [ 'alice', 'mallory' ], [ 'mallory', 'alice' ], [ 'nobody at all', 'mallory' ], [ 'alice', 'alice' ];
like(try('shy', q{SELECT ag_reassign('alice', 'shy')}), qr/permission denied to reassign models/, 'nor by who could become the owner but hasn\'t');
like(try('mallory', "SELECT ag_model_validator('ag_predict(text, jsonb)'::regprocedure)"), qr/ERROR/, 'the validator checks functions of its language only');
like(try('mallory', 'SELECT ag_model_handler()'), qr/must take one row/, 'the handler is for the server to call');
like(try('mallory', 'SELECT ag_predict_support(NULL)'), qr/ERROR/, 'so is what tells the planner');

# ---- views of views: what they show goes by who asks, whoever made them

try('alice', q{CREATE VIEW hall.hers AS SELECT name, data, my_right FROM ag_models; CREATE VIEW hall.columns AS SELECT * FROM ag_features; CREATE VIEW hall.jobs AS SELECT * FROM ag_jobs; GRANT SELECT ON hall.hers, hall.columns, hall.jobs TO PUBLIC});
like(try('mallory', 'SELECT (SELECT count(*) FROM hall.hers), (SELECT count(*) FROM hall.columns), (SELECT count(*) FROM hall.jobs)'), qr/^0\|0\|0$/m, 'alice\'s views of them show mallory nothing');
like(try('reader', 'SELECT (SELECT count(*) FROM hall.hers), (SELECT count(*) FROM hall.columns), (SELECT count(*) FROM hall.jobs), (SELECT count(data) FROM hall.hers)'), qr/^3\|0\|0\|0$/m, 'and the reader what he may see');
try('mallory', q{CREATE VIEW hall.trap AS SELECT name, data FROM ag_models; CREATE RULE sneak AS ON UPDATE TO hall.trap DO INSTEAD SELECT 1; GRANT SELECT ON hall.trap TO PUBLIC});
like(try('mallory', 'SELECT count(*) FROM hall.trap'), qr/^0$/m, 'mallory\'s own show her nothing after others have looked')
  if try('alice', 'SELECT count(*) FROM hall.trap') =~ /^[1-9]/m;
like(try('mallory', "INSERT INTO ag_models (name) VALUES ('x')"), qr/ERROR/, 'views take no rows');
like(try('mallory', "DELETE FROM $_"), qr/ERROR/, "nor give any: $_") for qw(ag_models ag_features ag_jobs ag_stats);
$node->stop;
done_testing();
