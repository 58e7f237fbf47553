// Package sandbox starts and stops the programs of this project as processes: a control
// plane, the controllers, the mock CSI driver. "sandbox demo", "sandbox" and the
// end-to-end tests use it.
//
//	plane, err := sandbox.StartControlPlane(ctx, sandbox.Config{Dir: dir})
//	err = sandbox.Apply(ctx, plane.RESTConfig(), deploy.Manifests)
//	driver, err := sandbox.StartDriver(ctx, sandbox.DriverConfig{Dir: dir})
//	controller, err := plane.StartPVController(ctx, sandbox.Controller{HonorReclaimPolicy: true})
//	provisioner, err := plane.StartProvisioner(ctx, driver, sandbox.Controller{HonorReclaimPolicy: true})
//
// Every Start function returns when its program is ready. If the program ends before, the
// error has the last lines of the log. The context bounds only that wait: a Process runs
// until Stop or Kill, or until this process ends.
//
// Two files of JSON lines record the work of the programs: the audit log of the control
// plane (FollowAudit, ReadAudit) and the call log of the driver (FollowCalls).
package sandbox
