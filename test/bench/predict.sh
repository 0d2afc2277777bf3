#!/bin/sh
# predict.sh [ROWS] - what predictions in SQL cost: many rows, point look-ups, the first one after connect, memory of a session; and
# XGBoost's and LightGBM's predict from memory beside it. Run by test/with_cluster (make bench-predict). BENCH_PYTHON: a Python with numpy,
# xgboost and lightgbm, else those lines stay away. BENCH_PART: one of rows, connect, lookup, memory, else all of them.
#
# Times are CPU time (user and system) of the one process that works, as getrusage has it: the median of five runs.
set -eu
rows=${1:-200000}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
q() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
wants() { [ -z "${BENCH_PART:-}" ] || [ "$BENCH_PART" = "$1" ]; }
median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
# CPU seconds of the last statement of a session, five sessions' median; statements before it only prepare
seconds() { # STATEMENT...
	for run in 1 2 3 4 5; do
		n=$#
		{
			echo "SET max_parallel_workers_per_gather = 0; SET jit = off;"
			for statement; do
				n=$((n - 1))
				[ $n -gt 0 ] || echo "SET client_min_messages = log; SET log_statement_stats = on;"
				echo "$statement;"
			done
		} >"$dir/run.sql"
		q -f "$dir/run.sql" 2>&1 >/dev/null | sed -n 's/^!.*[^0-9.]\([0-9.]*\) s user, \([0-9.]*\) s system, [0-9.]* s elapsed.*/\1 \2/p' |
			awk '{s = $1 + $2} END {print s}' # the last statement's
	done | median
}
per_row() { # NAME STATEMENT...
	name=$1
	shift
	s=$(seconds "$@")
	awk -v s="$s" -v n="$rows" -v name="$name" 'BEGIN {printf "%-58s %8.3f us a row\n", name, s * 1e6 / n}'
}

columns=$(seq -s ', ' -f 'c%.0f' 1 28)
q -c 'CREATE EXTENSION ag_pg' -c 'SELECT setseed(0.5)' -c "
CREATE TABLE t AS
SELECT id, $columns, c1 * c2 + sin(c3) + CASE WHEN c4 > 0.5 THEN c5 ELSE c6 * c7 END + c8 * 0.5 + 0.3 * random() AS y
FROM (SELECT id, $(seq -s ', ' -f 'random() * 2 - 1 AS c%.0f' 1 28) FROM generate_series(1, $rows) id) s" \
	-c 'ALTER TABLE t ADD PRIMARY KEY (id)' -c 'VACUUM (FREEZE, ANALYZE) t' >/dev/null
q -c "SELECT ag_fit('SELECT $columns, y FROM t WHERE id <= 20000', 'y', '{\"name\": \"m\", \"verbosity\": 0,
	\"hyperparameters\": {\"GBM\": {\"num_boost_round\": 100, \"max_depth\": 6, \"num_leaves\": 64, \"learning_rate\": 0.05}}}')" >/dev/null
q -c "CREATE VIEW features AS SELECT $columns FROM t"

if wants rows; then
	per_row "SELECT avg(c1) FROM t" "SELECT avg(c1) FROM t"
	per_row "SELECT avg(c1 + ... + c28) FROM t" "SELECT avg($(seq -s ' + ' -f 'c%.0f' 1 28)) FROM t"
	per_row "SELECT avg(ag_predict('m', t)) FROM t" "SELECT ag_prewarm('m')" "SELECT avg(ag_predict('m', t)) FROM t"
	per_row "SELECT avg(value) FROM ag_predict_table('m', 't')" "SELECT ag_prewarm('m')" \
		"SELECT avg(value) FROM ag_predict_table('m', 't')"
	per_row "SELECT count(prediction) FROM ag_predict_table('m', 't')" "SELECT ag_prewarm('m')" \
		"SELECT count(prediction) FROM ag_predict_table('m', 't')"
	if [ -n "${BENCH_PYTHON:-}" ]; then
		q -c "COPY (SELECT $columns, y FROM t) TO STDOUT CSV" >"$dir/rows.csv"
		"$BENCH_PYTHON" "$here/predict_peers.py" "$dir/rows.csv"
	fi
fi
if wants connect; then
	one="SELECT ag_predict('m', t) FROM t WHERE id = 7"
	warm="SELECT * FROM t WHERE id = 7"
	show() { awk -v s="$2" -v name="$1" 'BEGIN {printf "%-58s %8.3f ms\n", name, s * 1e3}'; }
	show "point look-up without a model, first after connect" "$(seconds "$warm")"
	show "ag_predict, first after connect" "$(seconds "$warm" "$one")"
	show "ag_predict, first after ag_prewarm" "$(seconds "$warm" "SELECT ag_prewarm('m')" "$one")"
	show "ag_predict, second" "$(seconds "$warm" "$one" "$one")"
fi
if wants lookup; then
	cat >"$dir/plain.sql" <<SQL
\set id random(1, $rows)
SELECT c1 FROM t WHERE id = :id;
SQL
	cat >"$dir/predict.sql" <<SQL
\set id random(1, $rows)
SELECT ag_predict('m', t) FROM t WHERE id = :id;
SQL
	# in turns, for others are at work on the machine
	for turn in 1 2 3 4 5 6 7; do
		for kind in plain predict; do
			pgbench -n -M prepared -c 1 -T 2 -f "$dir/$kind.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p' >>"$dir/$kind.tps"
		done
	done
	# without the protocol: what a look-up takes of the server's time
	loop() { echo "DO \$\$ BEGIN FOR i IN 1..20000 LOOP PERFORM $1 FROM t WHERE id = i; END LOOP; END \$\$"; }
	for what in c1 "c1 + c28" "ag_predict('m', t)"; do
		s=$(seconds "$(loop "$what")")
		awk -v s="$s" -v what="$what" 'BEGIN {printf "%-58s %8.3f us\n", "look-up of " what ", in a loop", s * 1e6 / 20000}'
	done
	plain=$(median <"$dir/plain.tps") predict=$(median <"$dir/predict.tps")
	awk -v a="$plain" -v b="$predict" 'BEGIN {printf "pgbench -M prepared: %.0f tps plain, %.0f with ag_predict: %.1f %%\n", a, b, 100 * b / a}'
fi
if wants memory; then
	q -c "SELECT ag_fit('SELECT $columns, y FROM t WHERE id <= 20000', 'y', '{\"name\": \"big\", \"verbosity\": 0, \"time_limit\": 600,
		\"hyperparameters\": {\"XT\": {\"n_estimators\": 100}}}')" >/dev/null
	anon="SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s*([0-9]+)')::int"
	before=$(q -c "SELECT c1 FROM t WHERE id = 7" -c "$anon" | tail -n 1)
	after=$(q -c "SELECT ag_predict('big', t) FROM t WHERE id = 7" -c "$anon" | tail -n 1)
	size=$(q -c "SELECT sum(octet_length(data)) FROM ag_member_part WHERE predictor = (SELECT id FROM ag_predictor WHERE name = 'big') AND member < 2147483647")
	echo "session with a model of $((size / 1000000)) MB: $(((after - before) / 1000)) MB more of its own memory"
fi
