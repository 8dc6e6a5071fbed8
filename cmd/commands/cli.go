package commands

// cli is the grammar of the command line.
type cli struct {
	globals

	Quickstart quickstartCmd `cmd:"" group:"models" help:"Start a cluster on this machine and train on it."`

	modelCommands

	Algorithm algorithmCmd `cmd:"" group:"models" help:"List the algorithms; show one and its settings."`

	Inspect inspectWhatCmd `cmd:"" group:"models" help:"Show what an algorithm computed while it trained a model."`

	Experiment experimentCmd `cmd:"" group:"models" help:"Run methods on datasets and compare their results in a report."`

	Dataset datasetCmd `cmd:"" group:"things" help:"Import, list, show, inspect, delete and generate datasets."`
	Job     jobCmd     `cmd:"" group:"things" help:"Submit, list, show, watch, pause, resume, cancel and delete jobs."`
	Model   modelCmd   `cmd:"" group:"things" help:"List, show, download and delete models."`

	serviceCommands

	Bench      benchCmd      `cmd:"" group:"other" help:"Measure the speed of one core and the overhead of a cluster."`
	Chaos      chaosCmd      `cmd:"" group:"other" help:"Inject faults into a cluster and check that nothing is lost."`
	Context    contextCmd    `cmd:"" group:"other" help:"Name the clusters that commands use."`
	Completion completionCmd `cmd:"" group:"other" help:"Print a script with which a shell completes commands and flags."`
	Config     configCmd     `cmd:"" group:"other" help:"Show the values of flags and where each value comes from."`
	Help       helpCmd       `cmd:"" group:"other" help:"Show the help of a command."`
	Version    versionCmd    `cmd:"" group:"other" help:"Print the version."`

	hiddenCommands
}

// modelGrammar is the part of cli with modelCommands. It is built in a fraction of the time.
type modelGrammar struct {
	globals
	modelCommands
}

// modelCommands train and use models. A library runs them often.
type modelCommands struct {
	Train    trainCmd    `cmd:"" group:"models" help:"Train a model, on a cluster or with --local in this process."`
	Predict  predictCmd  `cmd:"" group:"models" help:"Predict label distributions with a model."`
	Evaluate evaluateCmd `cmd:"" group:"models" help:"Compare a model's predictions with the true label distributions."`
}

// serviceCommands run and manage a cluster.
type serviceCommands struct {
	Coordinator coordinatorCmd `cmd:"" group:"services" help:"Run a coordinator; a cluster has one, three or five of them."`
	Worker      workerCmd      `cmd:"" group:"services" help:"Run a worker."`
	Cluster     clusterCmd     `cmd:"" group:"services" help:"Show coordinators and workers; add and remove coordinators."`
	Certs       certsCmd       `cmd:"" group:"services" help:"Make the certificates of a cluster, and check them."`
	Audit       auditCmd       `cmd:"" group:"services" help:"Show who asked a cluster for which change, and what was refused."`
	Token       tokenCmd       `cmd:"" group:"services" help:"Create, list and revoke tokens of users."`
	Backup      backupCmd      `cmd:"" group:"services" help:"Write a backup of a cluster's state and blobs."`
	Restore     restoreCmd     `cmd:"" group:"services" help:"Make a coordinator's folder for a new cluster from a backup."`
}

// hiddenCommands are started by other commands and by shells.
type hiddenCommands struct {
	NATS     natsCmd     `cmd:"" group:"other" name:"nats" hidden:"" help:"Run only the NATS server of a coordinator."`
	Echo     echoCmd     `cmd:"" group:"other" hidden:"" help:"Answer messages of bench, as a worker does."`
	Library  libraryCmd  `cmd:"" group:"other" hidden:"" help:"Run the commands of a library of another language."`
	Measures measuresCmd `cmd:"" group:"other" hidden:"" help:"Compare two arrays of label distributions."`
	Complete completeCmd `cmd:"" name:"__complete" group:"other" hidden:"" help:"Print the possible completions of a command line."`
}
