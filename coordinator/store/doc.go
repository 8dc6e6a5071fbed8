// Package store is a Raft node around the replicated state machine of package
// state: it puts entries into a log that a majority of coordinators has on disk,
// and shows the state after the last of them. See DESIGN.md.
package store
