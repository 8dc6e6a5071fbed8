// Package modelcmd has the commands that use models: they predict, evaluate, show, download and delete.
package modelcmd

type Cmd struct {
	List     modelListCmd     `cmd:"" help:"List the models of a cluster."`
	Show     modelShowCmd     `cmd:"" help:"Describe a model file, or a model of a cluster."`
	Download modelDownloadCmd `cmd:"" help:"Write a model of a cluster to a file."`
	Delete   modelDeleteCmd   `cmd:"" help:"Delete a model of a cluster; its job and the result are kept."`
}
