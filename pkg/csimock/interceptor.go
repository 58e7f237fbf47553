package csimock

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// intercept handles one call and logs the call before the response is sent. When serving
// ends, calls that wait in a fault are interrupted.
func (d *Driver) intercept(serving context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began := time.Now()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(serving, func() { cancel(errStopping) })()
		method := path.Base(info.FullMethod)
		response, err := d.handle(ctx, method, request, handler)
		call := Call{
			Time: time.Now(), Method: method, Code: status.Code(err).String(),
			Volume: volumeOf(request, response), Snapshot: snapshotOf(request, response), Name: nameOf(request),
			DurationMS: time.Since(began).Milliseconds(),
		}
		call, unlogged := d.calls.append(call, d.countVolumes)
		if unlogged != nil {
			return nil, status.Error(codes.Internal, unlogged.Error())
		}
		if d.config.CallFinished != nil {
			d.config.CallFinished(call)
		}
		if errors.Is(err, errDisconnected) {
			d.connections.drop()
		}
		if err != nil {
			return nil, err
		}
		return response, nil
	}
}

// handle runs the handler and the faults before and after it. A response with an error is
// for the log only.
func (d *Driver) handle(ctx context.Context, method string, request any, handler grpc.UnaryHandler) (any, error) {
	if !d.config.Capabilities.hasAll(gates[method]) {
		return nil, status.Errorf(codes.Unimplemented, "%s is switched off, it needs the capabilities %v", method,
			gates[method])
	}
	if err := d.checkSecrets(request); err != nil {
		return nil, err
	}
	fault, matched := d.faults.take(method, request)
	if matched && !fault.After {
		if err := d.apply(ctx, fault); err != nil {
			return nil, err
		}
	}
	response, err := handler(ctx, request)
	if saved := d.state.save(d.store); saved != nil {
		return response, status.Error(codes.Internal, saved.Error())
	}
	if err == nil && matched && fault.After {
		err = d.apply(ctx, fault)
	}
	if err == nil && matched {
		response = fault.Response.apply(response, d)
	}
	return response, err
}

// volumeOf returns the volume ID of a call, "" for none.
func volumeOf(request, response any) string {
	switch about := request.(type) {
	case interface{ GetVolumeId() string }:
		return about.GetVolumeId()
	case interface{ GetSourceVolumeId() string }:
		return about.GetSourceVolumeId()
	}
	created, _ := response.(*csi.CreateVolumeResponse)
	return created.GetVolume().GetVolumeId()
}

// snapshotOf returns the snapshot ID of a call, "" for none.
func snapshotOf(request, response any) string {
	if about, ok := request.(interface{ GetSnapshotId() string }); ok {
		return about.GetSnapshotId()
	}
	created, _ := response.(*csi.CreateSnapshotResponse)
	return created.GetSnapshot().GetSnapshotId()
}

// nameOf returns the requested name, "" for none.
func nameOf(request any) string {
	named, ok := request.(interface{ GetName() string })
	if !ok {
		return ""
	}
	return named.GetName()
}
