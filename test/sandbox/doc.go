// Package sandbox starts and stops the programs of this project as processes: a control
// plane, the controllers, the mock CSI driver. "sandbox demo", "sandbox" and the
// end-to-end tests use it.
//
//	cluster, err := sandbox.StartCluster(ctx, sandbox.ClusterConfig{Config: sandbox.Config{Dir: dir}, Manifests: []fs.FS{deploy.Manifests}})
//	driver, err := cluster.StartDriver(ctx, sandbox.DriverConfig{})
//	controller, err := cluster.StartLoops(ctx, false, sandbox.Controller{HonorReclaimPolicy: true})
//	provisioner, err := cluster.StartProvisioner(ctx, false, driver, sandbox.Controller{HonorReclaimPolicy: true})
//	err = cluster.Stop(ctx)
//
// What a cluster is made of can be started alone: StartControlPlane, StartDriver, and the methods
// of a ControlPlane. Every Start function returns when its program is ready. If the program ends
// before, the error has the last lines of the log. The context bounds only that wait: a Process
// runs until Stop or Kill, or until this process ends.
//
// Two files of JSON lines record the work of the programs: the audit log of the control
// plane (FollowAudit, ReadAudit) and the call log of the driver (FollowCalls).
package sandbox
