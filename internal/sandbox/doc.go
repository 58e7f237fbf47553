// Package sandbox starts and stops the programs of this project as processes
// of their own: a control plane, the controllers, the mock CSI driver. It is
// what "exeunt demo", "exeunt sandbox" and the end-to-end tests stand on, and
// knows none of them.
//
//	plane, err := sandbox.StartControlPlane(ctx, sandbox.Config{Dir: dir})
//	err = sandbox.Apply(ctx, plane.RESTConfig(), deploy.Manifests)
//	driver, err := sandbox.StartDriver(ctx, sandbox.DriverConfig{Dir: dir})
//	controller, err := plane.StartPVController(ctx, sandbox.Controller{HonorReclaimPolicy: true})
//	provisioner, err := plane.StartProvisioner(ctx, driver, sandbox.Controller{HonorReclaimPolicy: true})
//
// Every Start function returns when its program is ready, and fails with the
// last lines of the program's log when it dies before. The context bounds that
// wait only: a Process runs until Stop or Kill, or until this process ends.
//
// What the programs did is read from two files of JSON lines: the audit log of
// the control plane (FollowAudit, ReadAudit) and the call log of the driver
// (FollowCalls).
package sandbox
