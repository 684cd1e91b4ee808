CREATE OR REPLACE FUNCTION "{schema}".outbox_retention() RETURNS interval LANGUAGE sql IMMUTABLE AS
  $$ SELECT interval '{seconds} seconds' $$;
CREATE OR REPLACE FUNCTION "{schema}".outbox_part() RETURNS integer LANGUAGE sql STABLE AS
  $$ SELECT {part} $$;
