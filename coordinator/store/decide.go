package store

import (
	"fmt"
	"slices"
	"strings"
)

// reply is what another coordinator answered, or why it did not.
type reply struct {
	Answer
	err error
}

// decision is how a node begins.
type decision struct {
	cluster  string   // to belong to; empty: it has to wait
	founders []Server // of cluster, if it begins with them
	from     string   // the coordinator that decided so; empty: the node itself
	waits    []string // for what, if it may not begin yet
}

// decide judges what the others say to a node that is not settled. See DESIGN.md, A first
// start. A node begins a cluster only together with all its peers, so whatever was
// acknowledged later is on a majority of the founders.
func decide(self *Answer, replies map[string]reply) (d decision) {
	ids := sorted(replies)
	cluster, running := self.Cluster, false
	for _, id := range ids {
		r := replies[id]
		switch {
		case r.err != nil, r.Cluster == "":
		case cluster == "":
			cluster = r.Cluster
		case cluster != r.Cluster:
			d.waits = append(d.waits, otherCluster(self, id, r.Cluster, cluster))
		}
		running = running || r.err == nil && r.Cluster != "" && r.Phase != PhaseNew
	}
	switch {
	case len(d.waits) > 0:
	case running:
		d = belong(self, ids, replies, cluster)
	default:
		d = found(self, ids, replies, cluster)
	}
	if d.cluster == "" {
		for _, id := range ids {
			if r := replies[id]; r.err != nil {
				d.waits = append(d.waits, r.err.Error())
			}
		}
	}
	return d
}

func otherCluster(self *Answer, id, its, expected string) string {
	text := fmt.Sprintf("%s is a member of cluster %s, not of cluster %s", id, its, expected)
	if self.Seeded {
		return text + ": restore the same backup on every coordinator"
	}
	return text + ": give every coordinator folders of one cluster"
}

// belong decides how a node begins if others have a cluster already.
func belong(self *Answer, ids []string, replies map[string]reply, cluster string) (d decision) {
	var strangers []string
	for _, id := range ids {
		r := replies[id]
		if r.err != nil || r.Phase == PhaseNew || r.Cluster == "" {
			continue
		}
		if slices.ContainsFunc(r.Founders, func(s Server) bool { return s.ID == self.ID && s.Directory == self.Directory }) {
			return decision{cluster: cluster, founders: r.Founders, from: id}
		}
		members := r.Members
		if len(members) == 0 {
			members = r.Founders // it does not know who the members are now
		}
		listed := slices.ContainsFunc(members, func(s Server) bool { return s.ID == self.ID })
		switch {
		case listed:
			d.cluster = cluster
		case len(r.Members) == 0 && r.Phase == PhaseOpening:
			d.waits = append(d.waits, fmt.Sprintf("%s is still reading its log", id))
		case len(r.Members) == 0:
			d.waits = append(d.waits, fmt.Sprintf("%s has no leader yet", id))
		default:
			strangers = append(strangers, fmt.Sprintf("%s is a member of cluster %s, which consists of %s", id, cluster, serverIDs(members)))
		}
	}
	if d.cluster == "" && len(strangers) > 0 {
		d.waits = append(d.waits, strings.Join(strangers, "; "),
			fmt.Sprintf("%s is not one of them: start it with --join-cluster and add it (coppice cluster add %s=HOST:PORT), or correct --peers", self.ID, self.ID))
	}
	return d
}

// found decides whether a node begins a cluster with its peers, if none has a cluster. The
// first by ID decides for all of them.
func found(self *Answer, ids []string, replies map[string]reply, cluster string) (d decision) {
	if self.Cluster != "" && !self.Seeded {
		d.waits = append(d.waits, fmt.Sprintf("this coordinator was a member of cluster %s, but no coordinator that answers has its log: start a coordinator that has it, or restore a backup", self.Cluster))
	}
	founders := []Server{{ID: self.ID, Directory: self.Directory, RaftAddr: self.RaftAddr}}
	first := self.ID
	for _, id := range ids {
		r := replies[id]
		switch {
		case r.err != nil: // said by decide
			first = ""
		case r.Phase != PhaseNew || r.Directory == "":
			d.waits = append(d.waits, fmt.Sprintf("%s is starting", id))
		case r.Cluster != "" && !r.Seeded:
			d.waits = append(d.waits, fmt.Sprintf("%s was a member of cluster %s and has lost its log", id, r.Cluster))
		case r.Seeded != self.Seeded:
			d.waits = append(d.waits, fmt.Sprintf("%s was restored from a backup, and %s was not: restore the same backup on every coordinator", seededOf(self, id, r), newOf(self, id, r)))
		case r.Peers != self.Peers:
			d.waits = append(d.waits, fmt.Sprintf("%s has --peers %s, this coordinator has %s: give every coordinator the same list", id, r.Peers, self.Peers))
		case r.Heartbeat != self.Heartbeat:
			d.waits = append(d.waits, fmt.Sprintf("%s has --heartbeat %v, this coordinator has %v: give every coordinator the same value", id, r.Heartbeat, self.Heartbeat))
		}
		founders = append(founders, Server{ID: id, Directory: r.Directory, RaftAddr: r.RaftAddr})
		if first != "" {
			first = min(first, id)
		}
	}
	if len(d.waits) > 0 || first == "" {
		return d
	}
	if first != self.ID {
		d.waits = append(d.waits, fmt.Sprintf("%s starts the cluster", first))
		return d
	}
	slices.SortFunc(founders, func(a, b Server) int { return strings.Compare(a.ID, b.ID) })
	if cluster == "" {
		cluster = NewID()
	}
	return decision{cluster: cluster, founders: founders}
}

// seededOf names the coordinator that was restored, newOf the other one.
func seededOf(self *Answer, id string, r reply) string {
	if r.Seeded {
		return id
	}
	return self.ID
}

func newOf(self *Answer, id string, r reply) string {
	if r.Seeded {
		return self.ID
	}
	return id
}

// serverIDs lists the coordinators of servers.
func serverIDs(list []Server) string {
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), ", ")
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
