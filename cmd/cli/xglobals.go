package cli

import "github.com/alecthomas/kong"

// Globals are the flags of all commands.
type Globals struct {
	Output string `short:"o" enum:"text,json,csv,jsonl" default:"text" help:"Output format: text, json, csv (job curve) or jsonl (train, watch, run). Progress and logs go to stderr."`

	ConfigFile  string      `name:"config" placeholder:"FILE" help:"YAML file with values of flags."`
	HelpAll     allHelpFlag `help:"Show all flags, including rarely used flags."`
	ShowVersion versionFlag `name:"version" help:"Print the version and stop."`
}

// all implements grammar.
func (g *Globals) all() *Globals { return g }

// Grammar is what a command line may have: cli, or a part of it.
type Grammar interface{ all() *Globals }

// Groups are the titles under which help lists commands and flags.
var Groups = kong.Groups{
	"models": "Train and use models:", "things": "What a cluster holds:", "services": "Run a cluster:", "other": "Other commands:",
	"what": "What to train:", "test": "How to test:", "write": "What to write:", "cluster": "Which cluster:", "data": "How a data file is read:",
}

const description = "Coppice trains label distribution learning models on many machines, and loses no work when a machine fails."
