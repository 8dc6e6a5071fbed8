package commands

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestAdvice: commands that a cluster with TLS advises work as they are printed.
func TestAdvice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's here")
	ca := filepath.Join(dir, "certs")
	cmdtest.Works(t, "certs", "init", "--ca-dir", ca)
	cmdtest.Works(t, "certs", "node", "a", "--role", "coordinator", "--ca-dir", ca)
	cmdtest.Works(t, "certs", "node", "w1", "--role", "worker", "--ca-dir", ca)
	address := testkit.FreeAddress(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 2)
	start := func(args ...string) { go func() { ends <- cmdtest.RunContext(ctx, args...) }() }
	start("coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a="+address, "--tls-dir", filepath.Join(ca, "a"))
	defer func() {
		cancel()
		for range 2 {
			testkit.Receive(t, "the end of a service", ends)
		}
	}()
	admin := []string{"--server", address, "--tls-dir", filepath.Join(ca, "admin")}
	// advised finds a command in a text, and returns its arguments.
	advised := func(text, pattern string) []string {
		t.Helper()
		found := regexp.MustCompile("coppice (" + pattern + "[^;\n]*)").FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%q advises no %s", text, pattern)
		}
		words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+found[1]).Output() // as a shell reads it
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
	}
	file := cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1)
	out := cmdtest.Works(t, append([]string{"job", "submit", "--name", "j", "--data", file, "--algorithm", "sa-bfgs",
		"--test-fraction", "0.2"},
		admin...)...)
	watch := advised(out, "job watch")
	var worker []string
	testkit.Until(t, "the leader", func() bool {
		e := cmdtest.Run(t, append([]string{"cluster"}, admin...)...)
		if strings.Contains(e.Stdout, "no worker is connected") {
			worker = advised(e.Stdout, "worker --join")
		}
		return worker != nil
	})
	for i, word := range worker {
		worker[i] = map[string]string{"DIR": filepath.Join(dir, "w"), "CERTS": filepath.Join(ca, "w1")}[word]
		if worker[i] == "" {
			worker[i] = word
		}
	}
	start(worker...)
	cmdtest.Works(t, watch...)
	shown := cmdtest.Works(t, append([]string{"job", "show", "j"}, admin...)...)
	download := advised(shown, "model download")
	download[len(download)-5] = filepath.Join(dir, "m.model")
	cmdtest.Works(t, download...)
	predictions := advised(shown, "job predictions")
	predictions[slices.Index(predictions, "FILE")] = filepath.Join(dir, "p.csv")
	cmdtest.Works(t, predictions...)
	cmdtest.Works(t, advised(cmdtest.Works(t, append([]string{"model", "delete", "j"}, admin...)...), "job show")...)
}
