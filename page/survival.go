package page

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// maxLag is how many entries of the log a coordinator may lack and still take part in the next decision at once.
const maxLag = 5000

// verdict says whether a cluster survives the loss of one machine.
type verdict struct {
	Kind     string // good, bad, or empty for a warning: a class of the style sheet
	Sentence string
	Why      []string // more sentences
}

// survival decides whether a cluster survives the loss of one machine: whether the coordinators on all other machines
// are a quorum that can go on, whichever machine is lost. It is a pure function.
func survival(c *protocol.Cluster) verdict {
	if c.Leader == "" || len(c.Members) == 0 {
		return verdict{"bad", "This cluster has no leader now, so nothing can change and no job goes on.", []string{
			"A leader needs a quorum of the coordinators. coppice cluster members --stale says which of them answer."}}
	}
	voters, able, unable := 0, make(map[string][]string), []string(nil) // able coordinators by machine
	for i := range c.Members {
		m := &c.Members[i]
		if m.Role == protocol.RoleNonvoter {
			continue
		}
		voters++
		switch why, asked := unfit(m); {
		case !asked:
			return verdict{"", "The leader has not heard all coordinators yet. It has led for a few seconds only.", nil}
		case why != "":
			unable = append(unable, fmt.Sprintf("Coordinator %s %s.", m.ID, why))
		default:
			able[machineOf(m.Host, m.HTTP)] = append(able[machineOf(m.Host, m.HTTP)], m.ID)
		}
	}
	v := withoutMachine(voters, able, unable)
	workers := usableWorkers(c)
	switch {
	case len(workers) == 0:
		v.Why = append(v.Why, "No job goes on, because no worker can be used.")
	case len(workers) == 1 && v.Kind == "good":
		v.Kind = ""
		v.Sentence = strings.TrimSuffix(v.Sentence, ".") + fmt.Sprintf(", but jobs wait if it is %s, which has all workers.",
			slices.Collect(maps.Keys(workers))[0])
	case v.Kind == "good":
		v.Why = append(v.Why, fmt.Sprintf("Workers run on %d machines.", len(workers)))
	}
	return v
}

// unfit returns why a coordinator cannot take part in decisions, or "". asked is false if the leader has not asked it
// yet.
func unfit(m *protocol.Coordinator) (why string, asked bool) {
	switch {
	case !m.Alive && m.Problem == "" && m.LastSeen < 0:
		return "", false
	case !m.Alive:
		return "does not answer: " + m.Problem, true
	case m.Problem != "":
		return "has a problem: " + m.Problem, true
	case m.Missing > m.Lost: // a lost blob is lost with and without the machine
		return fmt.Sprintf("has not fetched %s yet", counted(m.Missing-m.Lost, "blob")), true
	case m.Lag > maxLag:
		return fmt.Sprintf("lacks %s entries of the log and must catch up", formatNumber(m.Lag)), true
	}
	return "", true
}

// withoutMachine is survival for the coordinators alone. able are the coordinators that can decide, by machine, and
// unable says why others cannot.
func withoutMachine(voters int, able map[string][]string, unable []string) verdict {
	quorum, count := voters/2+1, 0
	for _, ids := range able {
		count += len(ids)
	}
	var crowded []string
	survives := true
	for _, machine := range slices.Sorted(maps.Keys(able)) {
		ids := able[machine]
		if count-len(ids) >= quorum {
			continue
		}
		survives = false
		if len(ids) > 1 {
			slices.Sort(ids)
			crowded = append(crowded, fmt.Sprintf("Machine %s has %d of %d coordinators: %s.", machine, len(ids), voters,
				strings.Join(ids, ", ")))
		}
	}
	if survives && count >= quorum {
		return verdict{"good", "This cluster survives the loss of one machine.", append([]string{fmt.Sprintf(
			"%d coordinators on %d machines have a vote, and %d are enough.", voters, len(able), quorum)}, unable...)}
	}
	v := verdict{"bad", "This cluster does not survive the loss of one machine.", append(unable, crowded...)}
	if voters < 3 {
		v.Why = append(v.Why, fmt.Sprintf("It has %s with a vote. Three on different machines are needed.",
			counted(voters, "coordinator")))
	} else {
		v.Why = append(v.Why, fmt.Sprintf("Of %d coordinators %d must go on after a loss.", voters, quorum))
	}
	if count > quorum {
		v.Why = append(v.Why, "It survives the end of one process of a coordinator.")
	}
	return v
}

// usableWorkers counts the workers that can be given tasks, by machine.
func usableWorkers(c *protocol.Cluster) map[string]int {
	all := make(map[string]int)
	for i := range c.Workers {
		w := &c.Workers[i]
		if w.State == "alive" && w.IdleReason != protocol.IdleFolder && !isQuarantined(c, w.ID) {
			all[machineOf(w.Host, w.Address)]++
		}
	}
	return all
}

// machineOf returns what tells a machine from others: its name, or the host of an address if the name is not known.
func machineOf(name, address string) string {
	if name != "" {
		return name
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
