package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// clusterShowCmd is what `coppice cluster` alone does.
type clusterShowCmd struct{ serverFlags }

// Run implements `coppice cluster` and `coppice cluster show`.
func (c *clusterShowCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	info, err := cl.Cluster(a.ctx)
	if err != nil {
		return err
	}
	return a.print(info, func(w io.Writer) { writeCluster(w, info) })
}

func writeCluster(w io.Writer, c *protocol.Cluster) {
	leader := c.Leader
	if leader == "" {
		leader = "none just now; see: coppice cluster members --stale"
	}
	pairs(w, [][2]string{
		{"cluster", c.ID}, {"leader", leader}, {"epoch", fmt.Sprint(c.Epoch)},
		{"coordinators", plural(len(c.Coordinators), "coordinator") + "; see: coppice cluster members"},
		{"version", fmt.Sprintf("%s (protocol %d, numerics %d)", c.Version, c.Protocol, c.Numerics)},
	})
	if c.Problem != "" {
		pairs(w, [][2]string{{"problem", c.Problem}})
	}
	fmt.Fprintln(w)
	t := newTable(w, []string{"worker", "state", "slots", "shards", "version"}, 3, 4)
	for _, one := range c.Workers {
		t.AppendRow(rowOf(one.ID, one.State, fmt.Sprint(one.Slots), fmt.Sprint(one.Shards), one.Version))
	}
	t.Render()
	if len(c.Workers) == 0 && c.Leader != "" {
		fmt.Fprintf(w, "no worker is connected; start one: coppice worker --join %s --dir DIR\n", joinOf(c))
	}
	writeDistrusted(w, c.Distrusted)
}

// joinOf lists the coordinators as the flag --join takes them.
func joinOf(c *protocol.Cluster) string {
	var all []string
	for _, m := range c.Coordinators {
		all = append(all, m.HTTP)
	}
	return strings.Join(all, ",")
}
