// Package commands joins the commands of coppice to its command line. The packages next to it have the commands, one
// package for each noun.
package commands

import (
	"cmp"
	"context"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/cmd/benchcmd"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/clustercmd"
	"github.com/coppice-ldl/coppice/cmd/datasetcmd"
	"github.com/coppice-ldl/coppice/cmd/experimentcmd"
	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/cmd/modelcmd"
	"github.com/coppice-ldl/coppice/cmd/traincmd"
	"github.com/coppice-ldl/coppice/cmd/uicmd"
)

// Main runs the command line of this process, and ends the process with the exit code of the command.
func Main() {
	cli.Main(Run)
}

// Run runs a command line, without the name of the program, and returns its exit code. The command stops if ctx ends.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, grammarOf(args), Run, args, stdin, stdout, stderr)
}

// grammarOf returns the grammar of a command line. If the first word is the name of a command, the grammar has this
// command only, because kong takes longer to build the whole grammar than a small command takes to run. The commands
// that show other commands, and the file of --config, which may have values for other commands, need the whole grammar.
func grammarOf(args []string) cli.Grammar {
	setsConfig := func(arg string) bool { return strings.HasPrefix(arg, "--config") }
	if len(args) == 0 || slices.Contains([]string{"help", "config", "__complete"}, args[0]) ||
		os.Getenv(cli.Variable("config")) != "" || slices.ContainsFunc(args, setsConfig) {
		return &root{}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[root]()) {
		_, isCommand := f.Tag.Lookup("cmd")
		if isCommand && cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)) == args[0] {
			command := reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}})
			return &part{Plugins: kong.Plugins{reflect.New(command).Interface()}}
		}
	}
	return &root{}
}

// part is the grammar of one command.
type part struct {
	cli.Globals
	kong.Plugins
}

// root is the grammar of the command line.
type root struct {
	cli.Globals

	Quickstart benchcmd.QuickstartCmd `cmd:"" group:"models" help:"Start a cluster on this machine and train on it."`

	modelCommands

	Algorithm traincmd.AlgorithmCmd `cmd:"" group:"models" help:"List the algorithms; show one and its settings."`

	Inspect traincmd.InspectCmd `cmd:"" group:"models" help:"Show what an algorithm computed while it trained a model."`

	Experiment experimentcmd.Cmd `cmd:"" group:"models" help:"Run methods on datasets and compare their results in a report."`

	pageCommands

	Dataset datasetcmd.Cmd `cmd:"" group:"things" help:"Import, list, show, inspect, delete and generate datasets."`
	Job     jobcmd.Cmd     `cmd:"" group:"things" help:"Submit, list, show, watch, pause, resume, cancel and delete jobs."`
	Model   modelcmd.Cmd   `cmd:"" group:"things" help:"List, show, download and delete models."`

	serviceCommands

	Bench      benchcmd.Cmd          `cmd:"" group:"other" help:"Measure the speed of one core and the overhead of a cluster."`
	Chaos      benchcmd.ChaosCmd     `cmd:"" group:"other" help:"Inject faults into a cluster and check that nothing is lost."`
	Context    clustercmd.ContextCmd `cmd:"" group:"other" help:"Name the clusters that commands use."`
	Completion completionCmd         `cmd:"" group:"other" help:"Print a script with which a shell completes commands and flags."`
	Config     cli.ConfigCmd         `cmd:"" group:"other" help:"Show the values of flags and where each value comes from."`
	Help       cli.HelpCmd           `cmd:"" group:"other" help:"Show the help of a command."`
	Version    cli.VersionCmd        `cmd:"" group:"other" help:"Print the version."`

	hiddenCommands
}

// modelCommands train and use models.
type modelCommands struct {
	Train    traincmd.Cmd         `cmd:"" group:"models" help:"Train a model, on a cluster or with --local in this process."`
	Predict  modelcmd.PredictCmd  `cmd:"" group:"models" help:"Predict label distributions with a model."`
	Evaluate modelcmd.EvaluateCmd `cmd:"" group:"models" help:"Compare a model's predictions with the true label distributions."`
}

// pageCommands show the page in a browser.
type pageCommands struct {
	UI   uicmd.UICmd   `cmd:"" name:"ui" group:"models" help:"Show the experiments and models of a folder in a browser."`
	Open uicmd.OpenCmd `cmd:"" group:"things" help:"Show the page of a cluster in a browser, or print its address."`
}

// serviceCommands run and manage a cluster.
type serviceCommands struct {
	Coordinator clustercmd.CoordinatorCmd `cmd:"" group:"services" help:"Run a coordinator; a cluster has one, three or five of them."`
	Worker      clustercmd.WorkerCmd      `cmd:"" group:"services" help:"Run a worker."`
	Cluster     clustercmd.Cmd            `cmd:"" group:"services" help:"Show coordinators and workers; add and remove coordinators."`
	Certs       clustercmd.CertsCmd       `cmd:"" group:"services" help:"Make the certificates of a cluster, and check them."`
	Audit       clustercmd.AuditCmd       `cmd:"" group:"services" help:"Show who asked for which change, and what was refused."`
	Token       clustercmd.TokenCmd       `cmd:"" group:"services" help:"Create, list and revoke tokens of users."`
	Backup      clustercmd.BackupCmd      `cmd:"" group:"services" help:"Write a backup of a cluster's state and blobs."`
	Restore     clustercmd.RestoreCmd     `cmd:"" group:"services" help:"Make a coordinator's folder for a new cluster from a backup."`
}

// hiddenCommands are started by other commands and by shells.
type hiddenCommands struct {
	NATS     clustercmd.NATSCmd   `cmd:"" group:"other" name:"nats" hidden:"" help:"Run only the NATS server of a coordinator."`
	Library  cli.LibraryCmd       `cmd:"" group:"other" hidden:"" help:"Run the commands of a library of another language."`
	Measures modelcmd.MeasuresCmd `cmd:"" group:"other" hidden:"" help:"Compare two arrays of label distributions."`
	Complete completeCmd          `cmd:"" name:"__complete" group:"other" hidden:"" help:"Print the possible completions of a command line."`
}
