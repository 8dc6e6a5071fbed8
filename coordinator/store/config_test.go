package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// TestLog: Raft's log arrives one level lower, with its name, fields and formatted values.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	log := newLog(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Named("net").Error("no answer", "peer", "b", "list", hclog.Fmt("%d-%d", 1, 2))
	log.Warn("election")
	log.Info("quiet")
	got := b.String()
	for _, want := range []string{"level=WARN", `msg="no answer"`, "component=raft.net", "peer=b", "list=1-2",
		"level=INFO", "msg=election"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "quiet") {
		t.Errorf("detail at the level of information: %s", got)
	}
}
