package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/configz"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// configuration is what /configz serves. Its fields have the names of
// kube-controller-manager's configuration.
type configuration struct {
	metav1.TypeMeta  `json:",inline"`
	FeatureGates     map[string]bool                               `json:"featureGates"`
	ClientConnection componentconfig.ClientConnectionConfiguration `json:"clientConnection"`
	LeaderElection   componentconfig.LeaderElectionConfiguration   `json:"leaderElection"`
	Logging          *logsapi.LoggingConfiguration                 `json:"logging"`
	Binder           binderConfiguration                           `json:"persistentVolumeBinderController"`
}

type binderConfiguration struct {
	ConcurrentClaimSyncs    int                 `json:"concurrentClaimSyncs"`
	ConcurrentVolumeSyncs   int                 `json:"concurrentVolumeSyncs"`
	PVClaimBinderSyncPeriod metav1.Duration     `json:"pvClaimBinderSyncPeriod"`
	VolumeConfiguration     volumeConfiguration `json:"volumeConfiguration"`
}

type volumeConfiguration struct {
	EnableDynamicProvisioning  bool                  `json:"enableDynamicProvisioning"`
	EnableHostPathProvisioning bool                  `json:"enableHostPathProvisioning"`
	Recycler                   recyclerConfiguration `json:"persistentVolumeRecyclerConfiguration"`
}

type recyclerConfiguration struct {
	PodTemplateFilePathNFS      string `json:"podTemplateFilePathNFS"`
	MinimumTimeoutNFS           int32  `json:"minimumTimeoutNFS"`
	IncrementTimeoutNFS         int32  `json:"incrementTimeoutNFS"`
	PodTemplateFilePathHostPath string `json:"podTemplateFilePathHostPath"`
	MinimumTimeoutHostPath      int32  `json:"minimumTimeoutHostPath"`
	IncrementTimeoutHostPath    int32  `json:"incrementTimeoutHostPath"`
}

// DeepCopyObject returns the configuration itself, which is never changed.
func (c *configuration) DeepCopyObject() runtime.Object { return c }

func (o *options) configuration() *configuration {
	return &configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: "pv-controller.config.exeunt.io/v1alpha1",
			Kind: "PVControllerConfiguration"},
		FeatureGates: o.Gates(),
		ClientConnection: componentconfig.ClientConnectionConfiguration{
			Kubeconfig: o.Kubeconfig, ContentType: o.ContentType, QPS: o.QPS, Burst: int32(o.Burst),
		},
		LeaderElection: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       &o.leader.LeaderElect,
			LeaseDuration:     o.leader.LeaseDuration,
			RenewDeadline:     o.leader.RenewDeadline,
			RetryPeriod:       o.leader.RetryPeriod,
			ResourceLock:      o.leader.ResourceLock,
			ResourceName:      o.leader.ResourceName,
			ResourceNamespace: o.leader.ResourceNamespace,
		},
		Logging: o.Logging,
		Binder: binderConfiguration{
			ConcurrentClaimSyncs:    o.claimWorkers,
			ConcurrentVolumeSyncs:   o.volumeWorkers,
			PVClaimBinderSyncPeriod: metav1.Duration{Duration: o.resyncPeriod},
			VolumeConfiguration: volumeConfiguration{
				EnableDynamicProvisioning: o.dynamic, EnableHostPathProvisioning: o.plugins.hostPath,
				Recycler: o.plugins.configuration(),
			},
		},
	}
}

// publishConfig registers the configuration for /configz.
func (o *options) publishConfig() error {
	const name = "pv-controller"
	configz.Delete(name)
	config, err := configz.New(name)
	if err == nil {
		err = config.Set(o.configuration())
	}
	if err != nil {
		return fmt.Errorf("publish configuration: %w", err)
	}
	return nil
}
