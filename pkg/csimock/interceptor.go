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

// intercept answers one call and logs it before the answer leaves. Once
// serving is done, what still waits in a fault is interrupted.
func (d *Driver) intercept(serving context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began := time.Now()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(serving, func() { cancel(errStopping) })()
		method := path.Base(info.FullMethod)
		response, err := d.answer(ctx, method, request, handler)
		call := Call{
			Time: time.Now(), Method: method, Code: status.Code(err).String(),
			Volume: volumeOf(request, response), Snapshot: snapshotOf(request, response), Name: nameOf(request),
			DurationMS: time.Since(began).Milliseconds(),
		}
		if logged := d.calls.append(call, d.countVolumes); logged != nil {
			return nil, status.Error(codes.Internal, logged.Error())
		}
		if d.config.Answered != nil {
			d.config.Answered(call)
		}
		if errors.Is(err, errCut) {
			d.connections.drop()
		}
		if err != nil {
			return nil, err
		}
		return response, nil
	}
}

// answer runs the handler and the faults around it. A response that comes with
// an error is for the log only.
func (d *Driver) answer(ctx context.Context, method string, request any, handler grpc.UnaryHandler) (any, error) {
	if !d.config.Capabilities.hasAll(gates[method]) {
		return nil, status.Errorf(codes.Unimplemented, "%s is switched off, it needs the capabilities %v", method, gates[method])
	}
	if err := d.checkSecrets(request); err != nil {
		return nil, err
	}
	fault, struck := d.faults.take(method, request)
	if struck && !fault.After {
		if err := d.strike(ctx, fault); err != nil {
			return nil, err
		}
	}
	response, err := handler(ctx, request)
	if saved := d.state.save(d.store); saved != nil {
		return response, status.Error(codes.Internal, saved.Error())
	}
	if err == nil && struck && fault.After {
		err = d.strike(ctx, fault)
	}
	if err == nil && struck {
		response = fault.Response.apply(response, d)
	}
	return response, err
}

// volumeOf returns the ID of the volume that a call is about, if it has one.
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

// snapshotOf returns the ID of the snapshot that a call is about, if it has one.
func snapshotOf(request, response any) string {
	if about, ok := request.(interface{ GetSnapshotId() string }); ok {
		return about.GetSnapshotId()
	}
	created, _ := response.(*csi.CreateSnapshotResponse)
	return created.GetSnapshot().GetSnapshotId()
}

// nameOf returns the name that a request asks for, if it has one.
func nameOf(request any) string {
	named, ok := request.(interface{ GetName() string })
	if !ok {
		return ""
	}
	return named.GetName()
}
