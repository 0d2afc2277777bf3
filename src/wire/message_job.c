/*
 * message_job.c - the JOB message: options, columns and budgets of one fit.
 */
#include "wire/message.h"

#include <string.h>

#include "wire/decode.h"

void
ag_msg_job_write(AgWriter *out, const AgMsgJob *msg)
{
	ag_write_u32(out, (uint32_t) msg->n_entries);
	for (int i = 0; i < msg->n_entries; i++)
	{
		ag_write_u8(out, (uint8_t) msg->entries[i].type);
		ag_write_str(out, msg->entries[i].path);
		ag_write_str(out, msg->entries[i].text);
	}
	ag_write_u32(out, (uint32_t) msg->schema.n_columns);
	for (int i = 0; i < msg->schema.n_columns; i++)
	{
		const AgColumn *column = &msg->schema.columns[i];

		ag_write_u8(out, (uint8_t) column->type);
		ag_write_u8(out, (uint8_t) column->role);
		ag_write_str(out, column->name);
		ag_write_str(out, column->sql_type);
	}
	ag_write_i32(out, msg->label_column);
	ag_write_str(out, msg->source_name);
	ag_write_str(out, msg->time_zone);
	ag_write_u8(out, msg->raw_text);
	ag_write_f64(out, msg->time_left);
	ag_write_f64(out, msg->time_limit);
	ag_write_i64(out, msg->memory_limit_bytes);
	ag_write_str(out, msg->gpu_fallback);
	ag_write_i32(out, msg->num_gpus);
	ag_write_u8(out, msg->sandbox);
}

static void
entries_read(AgDecoder *d, AgMsgJob *msg)
{
	uint32_t n = ag_read_count(&d->in, 9); /* type and two lengths */

	msg->n_entries = 0;
	msg->entries = NULL;
	if (n > AG_MAX_OPTION_ENTRIES)
		ag_decode_reject(d);
	msg->entries = ag_decode_array(d, n, sizeof(AgOptionEntry));
	if (msg->entries == NULL)
		return;
	for (uint32_t i = 0; i < n; i++)
	{
		uint8_t type = ag_read_u8(&d->in);

		if (type > AG_JSON_ARRAY)
		{
			ag_decode_reject(d);
			return;
		}
		msg->entries[i].type = (AgJson) type;
		msg->entries[i].path = ag_decode_text(d);
		msg->entries[i].text = ag_decode_text(d);
	}
	msg->n_entries = (int) n;
}

static void
schema_read(AgDecoder *d, AgSchema *schema)
{
	uint32_t n = ag_read_count(&d->in, 10); /* type, role and two lengths */

	schema->n_columns = 0;
	schema->columns = NULL;
	if (n < 1 || n > AG_MAX_COLUMNS)
		ag_decode_reject(d);
	schema->columns = ag_decode_array(d, n, sizeof(AgColumn));
	if (schema->columns == NULL)
		return;
	for (uint32_t i = 0; i < n; i++)
	{
		AgColumn *column = &schema->columns[i];
		uint8_t type = ag_read_u8(&d->in);
		uint8_t role = ag_read_u8(&d->in);

		column->name = ag_decode_text(d);
		column->sql_type = ag_decode_text(d);
		if (!ag_type_valid(type) || role > AG_ROLE_TUNING || column->name[0] == '\0' ||
			strlen(column->name) > AG_NAME_MAX)
		{
			ag_decode_reject(d);
			return;
		}
		column->type = (AgType) type;
		column->role = (AgRole) role;
	}
	schema->n_columns = (int) n;
}

AgStatus
ag_msg_job_read(AgArena *arena, const void *payload, size_t n, AgMsgJob *msg, AgError *err)
{
	AgDecoder d;

	ag_decode_begin(&d, "JOB", payload, n, arena, err);
	entries_read(&d, msg);
	schema_read(&d, &msg->schema);
	msg->label_column = ag_read_i32(&d.in);
	msg->source_name = ag_decode_text(&d);
	msg->time_zone = ag_decode_text(&d);
	msg->raw_text = ag_decode_bool(&d);
	msg->time_left = ag_decode_number(&d);
	msg->time_limit = ag_decode_number(&d);
	msg->memory_limit_bytes = ag_read_i64(&d.in);
	msg->gpu_fallback = ag_decode_text(&d);
	msg->num_gpus = ag_read_i32(&d.in);
	msg->sandbox = ag_decode_bool(&d);
	if (msg->label_column < 0 || msg->label_column >= msg->schema.n_columns ||
		msg->memory_limit_bytes <= 0 || msg->num_gpus < -1)
		ag_decode_reject(&d);
	else if (msg->schema.columns[msg->label_column].role != AG_ROLE_LABEL)
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}
