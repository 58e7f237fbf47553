package sandbox

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// StoredVolumes returns the handles of all volumes that the driver at the socket has.
func StoredVolumes(ctx context.Context, socket string) ([]string, error) {
	return stored(socket, func(driver spec.ControllerClient, page string) ([]string, string, error) {
		list, err := driver.ListVolumes(ctx, &spec.ListVolumesRequest{StartingToken: page})
		var handles []string
		for _, entry := range list.GetEntries() {
			handles = append(handles, entry.GetVolume().GetVolumeId())
		}
		return handles, list.GetNextToken(), err
	})
}

// StoredSnapshots returns the handles of all snapshots that the driver at the socket has.
func StoredSnapshots(ctx context.Context, socket string) ([]string, error) {
	return stored(socket, func(driver spec.ControllerClient, page string) ([]string, string, error) {
		list, err := driver.ListSnapshots(ctx, &spec.ListSnapshotsRequest{StartingToken: page})
		var handles []string
		for _, entry := range list.GetEntries() {
			handles = append(handles, entry.GetSnapshot().GetSnapshotId())
		}
		return handles, list.GetNextToken(), err
	})
}

// stored returns the handles of all pages.
func stored(socket string,
	list func(driver spec.ControllerClient, page string) (handles []string, next string, err error)) ([]string, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to driver: %w", err)
	}
	defer connection.Close()
	driver, all := spec.NewControllerClient(connection), []string{}
	for page := ""; ; {
		handles, next, err := list(driver, page)
		if err != nil {
			return nil, fmt.Errorf("list what the driver has: %w", err)
		}
		all = append(all, handles...)
		if page = next; page == "" {
			return all, nil
		}
	}
}
