#!/bin/sh
# compare_exports.sh DATASETS PYTHON - exports models fitted on real tables and lets XGBoost, LightGBM and ONNX Runtime predict with them: the greatest difference to
# our own predictions. Run it by test/with_cluster, with a PYTHON that has xgboost, lightgbm, onnxruntime and pandas.
set -eu
datasets=$1 python=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
q() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
q -c 'CREATE EXTENSION ag_pg' -c 'SET client_min_messages = warning'
quick='"verbosity": 0, "time_limit": 60'
one() { # TABLE LABEL FAMILY PARAMETERS FORMAT...
	table=$1 label=$2 family=$3 parameters=$4
	shift 4
	q -c "SELECT ag_fit('$table', '$label', '{$quick, \"name\": \"m\", \"hyperparameters\": {\"$family\": $parameters}}')" >/dev/null
	q -c "COPY (SELECT t.*, $(q -c "SELECT CASE WHEN problem_type IN ('binary', 'multiclass') THEN 'ag_predict_proba(''m/$family'', t)::text' ELSE 'ag_predict(''m/$family'', t)' END FROM ag_models") AS ag_out FROM $table t) TO STDOUT CSV HEADER" >"$dir/rows.csv"
	for format; do
		q -c "SELECT encode(ag_export_bytea('m/$family', '$format'), 'hex')" >"$dir/model.hex"
		if [ "$format" = sql ]; then
			call=$(q -c "SELECT CASE WHEN problem_type = 'binary' THEN 'ag_predict_proba(''m/$family'', t)' ELSE 'to_jsonb(ag_predict(''m/$family'', t))' END FROM ag_models")
			{
				echo "SELECT 'sql', '$table', '$family', count(*), 'rows, greatest difference', max(abs(x - o) / greatest(1, abs(o))) FROM (SELECT x, CASE jsonb_typeof(o) WHEN 'object' THEN (SELECT value::float8 FROM jsonb_each_text(o) ORDER BY key COLLATE \"C\" DESC LIMIT 1) ELSE o::float8 END AS o FROM (SELECT"
				q -c "SELECT ag_export('m/$family', 'sql')"
				echo "AS x, $call AS o FROM $table t) s) s;"
			} >"$dir/statement.sql"
			q -f "$dir/statement.sql"
		else
			"$python" "$here/compare_exports.py" "$format" "$table" "$family" "$dir/model.hex" "$dir/rows.csv"
		fi
	done
	q -c "SELECT ag_drop('m')" >/dev/null
}
"$datasets/load" adult california_housing vehicle spambase concrete | q >/dev/null
small='{"num_boost_round": 100}'
one california_housing median_house_value GBM "$small" lightgbm_text sql
one concrete strength GBM "$small" lightgbm_text xgboost_json onnx sql
one concrete strength XGB '{"n_estimators": 100}' lightgbm_text xgboost_json onnx sql
one spambase type GBM "$small" lightgbm_text xgboost_json onnx sql
one vehicle Class GBM "$small" lightgbm_text xgboost_json onnx
one adult class GBM "$small" lightgbm_text sql
one spambase type RF '{"n_estimators": 20}' onnx sql
one concrete strength XT '{"n_estimators": 20}' onnx lightgbm_text sql
