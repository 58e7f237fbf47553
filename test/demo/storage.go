package demo

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// listMethod is the call of listVolumes. No other program in the cluster calls it.
const listMethod = "ListVolumes"

// listVolumes returns the handles of all volumes of the driver at socket.
func listVolumes(ctx context.Context, socket string) ([]string, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to driver: %w", err)
	}
	defer connection.Close()
	driver, handles := spec.NewControllerClient(connection), []string{}
	for page := ""; ; {
		list, err := driver.ListVolumes(ctx, &spec.ListVolumesRequest{StartingToken: page})
		if err != nil {
			return nil, fmt.Errorf("list volumes of driver: %w", err)
		}
		for _, entry := range list.GetEntries() {
			handles = append(handles, entry.GetVolume().GetVolumeId())
		}
		if page = list.GetNextToken(); page == "" {
			return handles, nil
		}
	}
}
