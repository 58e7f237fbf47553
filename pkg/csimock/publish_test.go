package csimock_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// attempts are calls in a row to publish one volume.
type attempts []*csi.ControllerPublishVolumeRequest

// at asks to publish a volume to a node in the given way.
func at(node string, how *csi.VolumeCapability, readOnly bool) *csi.ControllerPublishVolumeRequest {
	return &csi.ControllerPublishVolumeRequest{NodeId: node, VolumeCapability: how, Readonly: readOnly}
}

func TestControllerPublishVolume(t *testing.T) {
	readers := mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)
	oneWriter := mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER)
	writers := mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
	const here, there = csimock.DefaultNodeID, "other-node"
	for name, tc := range map[string]struct {
		calls attempts
		want  codes.Code
	}{
		"one node":                             {attempts{at(here, single(), false)}, codes.OK},
		"same node again":                      {attempts{at(here, single(), false), at(here, single(), false)}, codes.OK},
		"same node, read-only":                 {attempts{at(here, single(), false), at(here, single(), true)}, codes.AlreadyExists},
		"unknown node":                         {attempts{at("nowhere", single(), false)}, codes.NotFound},
		"empty node ID":                        {attempts{at("", single(), false)}, codes.InvalidArgument},
		"no capability":                        {attempts{at(here, nil, false)}, codes.InvalidArgument},
		"other access type":                    {attempts{at(here, raw(), false)}, codes.InvalidArgument},
		"second node, one writer":              {attempts{at(here, single(), false), at(there, single(), false)}, codes.FailedPrecondition},
		"second node, readers":                 {attempts{at(here, readers, true), at(there, readers, true)}, codes.OK},
		"second node, several writers":         {attempts{at(here, writers, false), at(there, writers, false)}, codes.OK},
		"second writer, single writer of many": {attempts{at(here, oneWriter, false), at(there, oneWriter, false)}, codes.FailedPrecondition},
		"reader beside the single writer":      {attempts{at(here, oneWriter, false), at(there, oneWriter, true)}, codes.OK},
		"multi-node beside single-node":        {attempts{at(here, single(), false), at(there, writers, false)}, codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			request := volumeRequest("one")
			request.VolumeCapabilities = append(request.VolumeCapabilities, readers, oneWriter, writers)
			id := create(t, driver, request)
			var err error
			for _, call := range tc.calls {
				expectCode(t, err, codes.OK) // only the last call may fail
				call.VolumeId = id
				_, err = driver.ControllerPublishVolume(t.Context(), call)
			}
			expectCode(t, err, tc.want)
		})
	}
}

func TestPublishedVolumeIsNotDeleted(t *testing.T) {
	server, driver := start(t, everything())
	id := create(t, driver, volumeRequest("one"))
	publish(t, driver, id)
	_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
	expectCode(t, err, codes.FailedPrecondition)
	if _, err := driver.ControllerUnpublishVolume(t.Context(),
		&csi.ControllerUnpublishVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
	deleteVolume(t, driver, id)
	if got := server.Volumes(); len(got) != 0 {
		t.Errorf("%d volumes are left", len(got))
	}
}

func TestUnpublishOfMissingVolumeSucceeds(t *testing.T) {
	_, driver := start(t, everything())
	id := create(t, driver, volumeRequest("one"))
	for _, request := range []*csi.ControllerUnpublishVolumeRequest{
		{VolumeId: "vol-9", NodeId: "nowhere"}, {VolumeId: id, NodeId: "nowhere"}, {VolumeId: id},
	} {
		_, err := driver.ControllerUnpublishVolume(t.Context(), request)
		expectCode(t, err, codes.OK)
	}
}

func TestVolumeLimitOfNode(t *testing.T) {
	config := everything()
	config.MaxVolumesPerNode = 1
	_, driver := start(t, config)
	first, second := create(t, driver, volumeRequest("one")), create(t, driver, volumeRequest("two"))
	publish(t, driver, first)
	request := at(csimock.DefaultNodeID, single(), false)
	request.VolumeId = second
	_, err := driver.ControllerPublishVolume(t.Context(), request)
	expectCode(t, err, codes.ResourceExhausted)
	if _, err := driver.ControllerUnpublishVolume(t.Context(),
		&csi.ControllerUnpublishVolumeRequest{VolumeId: first}); err != nil {
		t.Fatal(err)
	}
	publish(t, driver, second)
}

func TestConflictNamesTheNode(t *testing.T) {
	_, driver := start(t, everything())
	id := create(t, driver, volumeRequest("one"))
	publish(t, driver, id)
	request := at("other-node", single(), false)
	request.VolumeId = id
	_, err := driver.ControllerPublishVolume(t.Context(), request)
	if message := status.Convert(err).Message(); !strings.Contains(message, csimock.DefaultNodeID) {
		t.Errorf("the message %q does not name node %s", message, csimock.DefaultNodeID)
	}
}

func TestListingNamesTheNodes(t *testing.T) {
	_, driver := start(t, everything())
	id := create(t, driver, volumeRequest("one"))
	publish(t, driver, id)
	list, err := driver.ListVolumes(t.Context(), &csi.ListVolumesRequest{})
	expectCode(t, err, codes.OK)
	get, err := driver.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: id})
	expectCode(t, err, codes.OK)
	for _, nodes := range [][]string{list.GetEntries()[0].GetStatus().GetPublishedNodeIds(),
		get.GetStatus().GetPublishedNodeIds()} {
		if len(nodes) != 1 || nodes[0] != csimock.DefaultNodeID {
			t.Errorf("the volume is at nodes %v, want %s", nodes, csimock.DefaultNodeID)
		}
	}
}

// publish publishes a volume to the node of the driver.
func publish(t testing.TB, driver clients, id string) {
	t.Helper()
	request := at(csimock.DefaultNodeID, single(), false)
	request.VolumeId = id
	if _, err := driver.ControllerPublishVolume(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}
