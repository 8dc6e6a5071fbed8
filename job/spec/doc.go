// Package spec reads job specs: YAML files, --set key=value and the fields of the
// HTTP API. All use one table of keys: the keys of every spec and the settings of the
// algorithm. An unknown key, or a value of the wrong type or out of range, is an error that
// says where it is and which values are right.
package spec
