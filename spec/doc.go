// Package spec reads job specs: YAML files, --set key=value and the fields of the
// HTTP API all go through one table of keys, those that every job has and those
// of its algorithm. It is strict: an unknown key, a value of the wrong type or
// out of range is refused with its place and with what would be right.
package spec
