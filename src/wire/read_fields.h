// The reads of a store as lists of named fields, as op_fields.h has them for operations.
#pragma once

#include <optional>
#include <string_view>

#include <hapax/store.h>

#include "wire/op_fields.h"

namespace hapax::wire {

struct FindId {
  std::string_view stream{};
  std::string_view id{};
  std::optional<std::string_view> group{};
};
struct FindClaim {
  std::string_view scope{};
  std::string_view key{};
};
struct FindRegister {
  std::string_view name{};
};
struct FindPosition {
  std::string_view source{};
};
struct FindProducer {
  std::string_view stream{};
  std::string_view producer{};
};
struct DescribeStream {
  std::string_view stream{};
};

template <class V>
void fields(V& v, ReadRange& read) {
  v.required("stream", read.stream, "Name of the stream");
  v.optional("from", read.from, "First sequence wanted");
  v.optional("max", read.max, "How many records at most");
  v.optional("bytes_max", read.bytes_max, "End before it is more, but not before the first");
}
template <class V>
void fields(V& v, FindId& read) {
  v.required("stream", read.stream, "Name of the stream");
  v.required("id", KeyBytes{read.id}, "Message id");
  v.optional("group", OptionalKeyBytes{read.group}, "Group key, where ids are unique per group");
}
template <class V>
void fields(V& v, FindClaim& read) {
  claim_key(v, read);
}
template <class V>
void fields(V& v, FindRegister& read) {
  v.required("name", KeyBytes{read.name}, "Name of the register");
}
template <class V>
void fields(V& v, RegisterScan& read) {
  v.required("cursor", read.cursor, "`next` of the page before; 0 = from the start");
  v.optional("max", read.max, "How many to look at");
  v.optional("prefix", KeyBytes{read.prefix}, "Only names that begin with it");
}
template <class V>
void fields(V& v, FindPosition& read) {
  v.required("source", read.source, "Outside source");
}
template <class V>
void fields(V& v, FindProducer& read) {
  v.required("stream", read.stream, "Name of the stream");
  v.required("producer", read.producer, "Who counts its records");
}
template <class V>
void fields(V& v, DescribeStream& read) {
  v.required("stream", read.stream, "Name of the stream");
}

}  // namespace hapax::wire
