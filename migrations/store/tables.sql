-- The tables of a shared store. They are made once, by the first process that opens the store, and
-- are no part of an application's schema. {schema} is quoted where it is put in.
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.format (version int4 NOT NULL, segment_bytes int8 NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.log (
  segment int4 NOT NULL, at int8 NOT NULL, last int8 NOT NULL, mark int8 NOT NULL,
  bytes bytea NOT NULL, PRIMARY KEY (segment, at));
CREATE INDEX IF NOT EXISTS log_last ON {schema}.log (last);
CREATE TABLE IF NOT EXISTS {schema}.file (
  id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS {schema}.piece (
  file int8 NOT NULL, at int8 NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (file, at));
-- Bytes are stored as they are: they do not compress well, and pieces of them are read.
ALTER TABLE {schema}.log ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE {schema}.piece ALTER COLUMN bytes SET STORAGE EXTERNAL;
INSERT INTO {schema}.format SELECT {version}, {segment_bytes}
  WHERE NOT EXISTS (SELECT 1 FROM {schema}.format);
