package store

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Server is one voter or nonvoter of Raft: a coordinator and the folder that it has. Raft's
// server ID consists of both, so a coordinator with an emptied folder is another server.
type Server struct {
	ID        string `json:"id"`        // of the coordinator
	Directory string `json:"directory"` // the random id of its folder
	RaftAddr  string `json:"raft"`      // host:port, when it became a member
}

// raftID returns the ID of the server in Raft.
func (s Server) raftID() raft.ServerID { return raft.ServerID(s.ID + "." + s.Directory) }

// address returns the address that Raft dials. It names the server, so that the stream
// layer knows which server must answer there.
func (s Server) address() raft.ServerAddress {
	return raft.ServerAddress(string(s.raftID()) + "@" + s.RaftAddr)
}

// parseServer splits a server ID and an address of Raft.
func parseServer(id raft.ServerID, address raft.ServerAddress) Server {
	s := Server{ID: string(id), RaftAddr: string(address)}
	if at := strings.IndexByte(s.RaftAddr, '@'); at >= 0 {
		s.RaftAddr = s.RaftAddr[at+1:]
	}
	if dot := strings.LastIndexByte(s.ID, '.'); dot >= 0 {
		s.ID, s.Directory = s.ID[:dot], s.ID[dot+1:]
	}
	return s
}

// NewID draws an identifier for a folder or a cluster: 48 random bits in hexadecimal.
func NewID() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Phase says how far a node is. See DESIGN.md, A node that starts.
type Phase string

// The phases.
const (
	PhaseNew     Phase = "new"     // it is not settled how the node begins
	PhaseOpening Phase = "opening" // the node reads its log
	PhaseJoining Phase = "joining" // its log is empty; a leader has to add the node
	PhaseMember  Phase = "member"  // the node has a log
)

// Answer is what a node tells others about itself.
type Answer struct {
	Phase     Phase
	ID        string
	Directory string
	Cluster   string   // empty if the node belongs to none yet
	Founders  []Server // the servers that the cluster began with; empty if the node was added
	Seeded    bool     // true if a new node was restored from a backup
	RaftAddr  string   // host:port
	// Peers and Heartbeat must be the same on all nodes that begin a cluster.
	Peers     string
	Heartbeat time.Duration

	Term uint64 // of Raft; 0 before the log is open
	Last uint64 // index of its last entry
	// Members lists the servers of the latest configuration that the node knows to be
	// committed, and Voters the IDs of its voters. Both are empty if it knows none.
	Members []Server
	Voters  []string
}
