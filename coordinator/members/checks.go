package members

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// MaxVoters is how many coordinators a cluster may have.
const MaxVoters = 7

// find returns the member of that id, or nil.
func find(list []protocol.Member, id string) *protocol.Member {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// voters returns the members that vote, but one.
func voters(list []protocol.Member, but string) (v []protocol.Member) {
	for _, m := range list {
		if m.Role != protocol.RoleNonvoter && m.ID != but {
			v = append(v, m)
		}
	}
	return v
}

// nonvoter returns a member that catches up, but one, or nil.
func nonvoter(list []protocol.Member, but string) *protocol.Member {
	for i := range list {
		if list[i].Role == protocol.RoleNonvoter && list[i].ID != but {
			return &list[i]
		}
	}
	return nil
}

func names(list []protocol.Member) string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, ", ")
}

func majority(n int) int { return n/2 + 1 }

// checkLeft refuses a change after which fewer than a majority of these voters
// would answer, or have all blobs.
func checkLeft(left []protocol.Member, doing string) error {
	var silent, lacking []protocol.Member
	for _, m := range left {
		switch {
		case !m.Alive:
			silent = append(silent, m)
		case m.Missing > m.Lost: // what each lacks is lost whoever stays
			lacking = append(lacking, m)
		}
	}
	need := majority(len(left))
	if len(left)-len(silent) < need {
		return refused("%s leaves the voters %s, but coordinator %s does not answer: nothing can be committed without a quorum of %d; restart that coordinator, or remove it first",
			doing, names(left), names(silent), need)
	}
	if len(left)-len(silent)-len(lacking) < need {
		return refused("%s leaves the voters %s, but coordinator %s has not fetched %s yet: wait, and see coppice cluster members",
			doing, names(left), names(lacking), blobsOf(lacking[0].Missing))
	}
	return nil
}

// onTheirWay is for how many seconds blobs may be on their way to a member that is to lead.
const onTheirWay = 1

func blobsOf(n int) string {
	if n == 1 {
		return "1 blob"
	}
	return fmt.Sprintf("%d blobs", n)
}

// successor returns the voter that the leader should hand over to where the user names none: one that has all blobs, if
// another lacks some; else none, and the one with the most of the log is taken.
func successor(others []protocol.Member) (id string) {
	lacking := false
	for _, m := range others {
		switch {
		case m.MissingFor >= onTheirWay:
			lacking = true
		case id == "" && m.Alive && m.Problem == "":
			id = m.ID
		}
	}
	if !lacking {
		return ""
	}
	return id
}

// warn says what a number of voters leaves to be wished for.
func warn(n int) string {
	switch {
	case n == 1:
		return "a single coordinator is left: if it fails, the cluster stops; the coordinator's disk has the only copy of the data"
	case n == 2:
		return "the cluster stops if one of its 2 coordinators fails: add a third coordinator"
	case n%2 == 0:
		return fmt.Sprintf("a cluster of %d coordinators survives the loss of %d, as does a cluster of %d: add or remove a coordinator", n, (n-1)/2, n-1)
	}
	return ""
}
