podman run --device nvidia.com/gpu=all --security-opt=label=disable --entrypoint bash docker.io/library/ubuntu:24.04 -c 'echo $HOME'
