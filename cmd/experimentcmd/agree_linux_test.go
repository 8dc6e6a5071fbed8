package experimentcmd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestAgree: on a terminal only y or yes agrees, and an interrupt ends the question at once.
func TestAgree(t *testing.T) {
	ask := func(ctx context.Context, typed string) error {
		t.Helper()
		screen, tty := clitest.Terminal(t, 80)
		t.Cleanup(func() { tty.Close() })
		answered := make(chan error, 1)
		a := &cli.App{Ctx: ctx, Stdin: tty, Stderr: tty}
		go func() {
			answered <- new(cellFlags).agree(a, &protocol.ExperimentPlan{Name: "e", Orphaned: 2, Changes: []string{"folds"}})
		}()
		shown, b := "", make([]byte, 1024)
		for !strings.Contains(shown, "[y/N] ") {
			n, err := screen.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			shown += string(b[:n])
		}
		if _, err := screen.Write([]byte(typed)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-answered:
			return err
		case <-time.After(testkit.Limit):
			t.Fatalf("%q: no end", typed)
			return nil
		}
	}
	for typed, agrees := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "maybe\n": false} {
		if err := ask(t.Context(), typed); (err == nil) != agrees {
			t.Errorf("%q: %v", typed, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	if err := ask(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt: %v", err)
	}
}
