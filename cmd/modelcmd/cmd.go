// Package modelcmd has the commands that use models: they predict, evaluate, show, download and delete.
package modelcmd

// Cmd is `coppice model`.
type Cmd struct {
	List     listCmd     `cmd:"" help:"List the models of a cluster."`
	Show     showCmd     `cmd:"" help:"Describe a model file, or a model of a cluster."`
	Download downloadCmd `cmd:"" help:"Write a model of a cluster to a file."`
	Delete   deleteCmd   `cmd:"" help:"Delete a model of a cluster; its job and the result are kept."`
}
