package protocol

// Self is what a coordinator says of itself, whoever leads.
type Self struct {
	MemberEntry
	Cluster   string `json:"cluster"` // id of the cluster; a new coordinator has it from --join-cluster
	Protocol  int    `json:"protocol"`
	Numerics  int    `json:"numerics"`
	Heartbeat int    `json:"heartbeat_ms"`
	// External is the URL of a NATS that is not the coordinators' own; empty: it is.
	External string `json:"external_nats,omitempty"`
	Leader   string `json:"leader"`  // whom it takes for the leader; empty: none
	Term     uint64 `json:"term"`    // of Raft
	Last     uint64 `json:"last"`    // index of its last log entry; 0: it has joined no cluster yet
	Applied  uint64 `json:"applied"` // index of the last entry that its state has seen
	// Contact is how long ago it heard the leader; 0 on the leader, -1: never.
	Contact int64 `json:"last_contact_ms"`
	// Missing is how many blobs its state refers to and it lacks; Lost are those of them that each other
	// coordinator says it lacks, and MissingFor is for how many seconds the first has been missing.
	Missing    int     `json:"missing_blobs"`
	Lost       int     `json:"lost_blobs"`
	MissingFor float64 `json:"missing_blobs_seconds"`
	// Host is the name of its machine, and Load the load average of a minute; 0 where unknown.
	Host string  `json:"host,omitempty"`
	Load float64 `json:"load,omitempty"`
	// Problem, where set, is why it cannot lead or serve as it should: its disk is
	// full, NATS is away, a part of its log is being fetched anew.
	Problem string `json:"problem,omitempty"`
	// Warning, where set, is what does not suit, though it can lead and serve: a round trip
	// that is long for the timeouts.
	Warning string `json:"warning,omitempty"`

	// Process is drawn when the process starts: two processes with one identity differ in it.
	Process string `json:"process,omitempty"`

	// What follows is for coordinators that start: see coordinator/store/DESIGN.md.
	Phase     string       `json:"phase"`              // new, opening, joining or member
	Directory string       `json:"directory"`          // the random id of its folder
	Founders  []RaftServer `json:"founders,omitempty"` // that the cluster began with
	Seeded    bool         `json:"seeded,omitempty"`   // true if a new folder was restored from a backup
	Peers     string       `json:"peers,omitempty"`    // its --peers
	// Servers and Voters are the members, and those that vote, if it knows them to be committed.
	Servers []RaftServer  `json:"servers,omitempty"`
	Voters  []MemberEntry `json:"voters,omitempty"`
}

// RaftServer is a coordinator with the folder that it has, as Raft knows it.
type RaftServer struct {
	ID        string `json:"id"`
	Directory string `json:"directory"`
	RaftAddr  string `json:"raft"`
}

// Members is who the coordinators are, from the leader's Raft configuration.
type Members struct {
	Cluster string   `json:"cluster"`
	Leader  string   `json:"leader"`
	Applied uint64   `json:"applied"` // by the leader
	Members []Member `json:"members"` // by id
	// Warning, where set, is what a change just made leaves to be wished for.
	Warning string `json:"warning,omitempty"`
}

// The roles of a Member.
const (
	RoleLeader   = "leader"
	RoleVoter    = "voter"
	RoleNonvoter = "nonvoter" // it catches up, and votes once it has
)

// Member is one coordinator of the cluster.
type Member struct {
	MemberEntry
	Directory string `json:"directory"` // the random id of its folder
	Role      string `json:"role"`
	// Alive: it answered the leader just now. What follows is then of it, and
	// otherwise Problem says why not. Of one that is alive Problem is what it says
	// of itself.
	Alive   bool   `json:"alive"`
	Applied uint64 `json:"applied"`
	Contact int64  `json:"last_contact_ms"` // with the leader; -1: never
	// As Self has them.
	Missing    int     `json:"missing_blobs"`
	Lost       int     `json:"lost_blobs"`
	MissingFor float64 `json:"missing_blobs_seconds"`
	Problem    string  `json:"problem,omitempty"`
	Warning    string  `json:"warning,omitempty"` // as Self has it
}

// AddRequest makes the coordinator ID, which runs and serves HTTP at that address,
// a member. It votes once it has caught up.
type AddRequest struct {
	ID   string `json:"id"`
	HTTP string `json:"http"`
}

// TransferRequest hands the leadership over to a voter; empty: any.
type TransferRequest struct {
	To string `json:"to,omitempty"`
}
