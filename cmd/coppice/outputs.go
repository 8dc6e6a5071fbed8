package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// What -o may be.
const (
	outputText  = "text"
	outputJSON  = "json"
	outputCSV   = "csv"
	outputJSONL = "jsonl"
)

// printer is a command that prints more than text and json.
type printer interface{ outputs() []string }

// outputsOf lists what -o of a command may be.
func outputsOf(n *kong.Node) []string {
	all := []string{outputText, outputJSON}
	if n == nil || !n.Target.IsValid() || !n.Target.CanAddr() {
		return all
	}
	if p, ok := n.Target.Addr().Interface().(printer); ok {
		all = append(all, p.outputs()...)
	}
	return all
}

// checkOutput refuses an output that a command does not have.
func checkOutput(n *kong.Node, output string) error {
	all := outputsOf(n)
	if n == nil || slices.Contains(all, output) {
		return nil
	}
	last := len(all) - 1
	return usagef("-o %s: coppice %s prints %s or %s", output, strings.Join(path(n), " "), strings.Join(all[:last], ", "), all[last])
}
