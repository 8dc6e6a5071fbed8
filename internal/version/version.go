// Package version holds the version of Coppice, for provenance, handshakes and
// `coppice version`.
package version

// String is the version of this build.
const String = "0.1.0"
