// Package modelcmd has the commands that use models: they predict, evaluate, show, export, verify and delete.
package modelcmd

// Cmd is `coppice model`.
type Cmd struct {
	List     listCmd     `cmd:"" help:"List the models of a cluster."`
	Show     showCmd     `cmd:"" help:"Describe a model file, or a model of a cluster."`
	Explain  explainCmd  `cmd:"" help:"Explain a model: importance of features, SHAP values, paths, weights."`
	Download downloadCmd `cmd:"" help:"Write a model of a cluster to a file."`
	Export   exportCmd   `cmd:"" help:"Write a model for programs without Coppice, with its card."`
	Card     cardCmd     `cmd:"" help:"Write the card of a model: data, measures, hyperparameters and commands."`
	Verify   verifyCmd   `cmd:"" help:"Train a model again from its data, and compare the digests."`
	Diff     diffCmd     `cmd:"" help:"Compare two models: hyperparameters, data, measures and predictions."`
	Delete   deleteCmd   `cmd:"" help:"Delete a model of a cluster; its job and the result are kept."`
}
