package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/spec"
)

const description = "Coppice trains label distribution learning models on many machines and does not lose the work."

// cli is the grammar of the command line.
type cli struct {
	Output string `short:"o" enum:"text,json" default:"text" help:"What to print: text or json. JSON is one value on stdout; progress and logs go to stderr."`

	Quickstart quickstartCmd `cmd:"" help:"Start a whole cluster on this machine, train on it and show the result."`
	Train      trainCmd      `cmd:"" help:"Train a model, on a cluster or with --local in this process."`
	Predict    predictCmd    `cmd:"" help:"Predict label distributions with a model."`
	Evaluate   evaluateCmd   `cmd:"" help:"Compare a model's predictions with the true label distributions."`
	Dataset    datasetCmd    `cmd:"" help:"Import, list, show, inspect, delete and generate datasets."`
	Job        jobCmd        `cmd:"" help:"Submit, list, show, watch, pause, resume and cancel jobs."`
	Model      modelCmd      `cmd:"" help:"List, show and download models."`

	Cluster clusterCmd `cmd:"" help:"Look after a cluster: its coordinators and its workers."`
	Backup  backupCmd  `cmd:"" help:"Write a backup of a cluster: its state and its blobs at one index."`
	Restore restoreCmd `cmd:"" help:"Make the folder of a new cluster's coordinator from a backup."`

	Coordinator coordinatorCmd `cmd:"" help:"Run a coordinator: one of one, three or five."`
	Worker      workerCmd      `cmd:"" help:"Run a worker."`
	Bench       benchCmd       `cmd:"" help:"Measure on this machine what a cluster costs over training in one process."`
	Chaos       chaosCmd       `cmd:"" help:"Kill, stop and cut off the processes of a cluster on this machine, and check that nothing is lost."`
	NATS        natsCmd        `cmd:"" name:"nats" hidden:"" help:"Run the NATS server of coordinators alone."`
	Echo        echoCmd        `cmd:"" hidden:"" help:"Answer messages of bench, as a worker does."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// usageError is a wrong command line: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// isUsage reports whether an error is the user's way of asking: flags, specs and
// settings.
func isUsage(err error) bool {
	var (
		usage   usageError
		inFile  *spec.Error
		setting *algorithms.ParamError
	)
	return errors.As(err, &usage) || errors.As(err, &inFile) || errors.As(err, &setting)
}

type versionCmd struct{}

// Run implements `coppice version`.
func (versionCmd) Run(a *app) error {
	v := struct {
		Version  string `json:"version"`
		Protocol int    `json:"protocol"`
		Numerics int    `json:"numerics"`
	}{version.String, protocol.Version, algorithms.Numerics}
	return a.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "coppice %s (protocol %d, numerics %d)\n", v.Version, v.Protocol, v.Numerics)
	})
}

// printHelp prints kong's help and, for commands that take settings, their table.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	node := ctx.Selected()
	if node == nil || !node.Target.IsValid() || !node.Target.CanAddr() {
		return nil
	}
	if s, ok := node.Target.Addr().Interface().(interface{ settingsHelp() string }); ok {
		_, err := io.WriteString(ctx.Stdout, "\n"+strings.TrimRight(s.settingsHelp(), "\n")+"\n")
		return err
	}
	return nil
}
