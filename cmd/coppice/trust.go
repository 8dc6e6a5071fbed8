package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/protocol"
)

// clusterTrustCmd ends the distrust of a worker.
type clusterTrustCmd struct {
	Worker string `arg:"" help:"Name of a worker that coppice cluster show lists as quarantined."`

	changeFlags
}

// Run implements `coppice cluster trust`.
func (c *clusterTrustCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.Trust(a.ctx, c.Worker); err != nil {
		return err
	}
	trusted := struct {
		Worker string `json:"worker"`
	}{c.Worker}
	return a.print(trusted, func(w io.Writer) {
		fmt.Fprintf(w, "worker %s is used again; the jobs for which it computed results are still marked as suspect\n", c.Worker)
	})
}

// writeDistrusted lists the workers that audits found out.
func writeDistrusted(w io.Writer, list []protocol.Quarantined) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w, []string{"quarantined worker", "since", "why"})
	for _, d := range list {
		t.AppendRow(rowOf(d.Worker, clock(d.Time), d.Reason))
	}
	t.Render()
	fmt.Fprintln(w, "to use a worker again: coppice cluster trust WORKER")
}
