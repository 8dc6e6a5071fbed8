package commands

import (
	"fmt"

	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// sharedFlag says who may read what a command makes on a cluster.
type sharedFlag struct {
	Shared bool `group:"cluster" help:"Let all users of the cluster read what this command makes there (default: only you and admins)."`
}

// noteNotShared says that --shared has changed nothing, since what it is about existed before and is private. kind is dataset,
// job or experiment.
func noteNotShared(a *app, kind, name string) {
	a.note("note: %s %s was there before and is private; to share it: %s", kind, name, a.command(kind+" share "+name))
}

// whatIsFreed says how much disk space a deletion frees, and when.
func whatIsFreed(d *protocol.Deletion) string {
	var bytes uint64
	for i := range d.Jobs {
		bytes += d.Jobs[i].Bytes
	}
	does := "this frees"
	if d.DryRun {
		does = "this would free"
	}
	switch {
	case d.Frees == 0 && bytes == 0:
		return does + " no disk space"
	case d.Frees == 0:
		return does + " no disk space: other jobs need the same models and predictions"
	}
	rest := ""
	if d.Frees < bytes {
		rest = " (other jobs need the rest)"
	}
	return fmt.Sprintf("%s %s%s on the disk of each coordinator %s", does, units.Format(int64(d.Frees)), rest, whenFreed())
}

// whenFreed says when the space of deleted data is free.
func whenFreed() string {
	return fmt.Sprintf("within seconds if the files are older than %.0f minutes, and otherwise when they reach that age", protocol.BlobGrace.Minutes())
}

// roomIsFree is whatIsFreed for a deletion that does not know how much it frees.
func roomIsFree() string {
	return "data that nothing else needs are deleted from the disks " + whenFreed()
}
