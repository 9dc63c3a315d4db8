# What belongs to no part alone: documents, and the Debian package that `cpack -G DEB` makes in the build folder.
set(package gstreamer1.0-nonlocal)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright)
if(EXISTS ${PROJECT_SOURCE_DIR}/README.md)
  install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package})
endif()

set(CPACK_PACKAGE_NAME ${package})
set(CPACK_PACKAGE_VENDOR nonlocal)
set(CPACK_PACKAGE_CONTACT "nonlocal maintainers <maintainers@users.noreply.nonlocal.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GStreamer elements that filter video by non-local averaging")
set(CPACK_PACKAGE_DESCRIPTION
  "The element nonlocaldenoise takes the noise out of live and recorded video
by non-local means: each pixel becomes the average of those whose
surroundings look alike. selfattention runs trained networks with
attention on frames, textcross grades them as a text says.
.
Also here: ready pipelines in /usr/share/nonlocal/pipelines, the program
nonlocal, and the library libnonlocal with its headers.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# Beyond what the binaries link: the elements that the pipelines and the program play.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "gstreamer1.0-plugins-base (>= 1.22)")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "gstreamer1.0-tools, gstreamer1.0-plugins-base-apps, gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad, \
gstreamer1.0-plugins-ugly, gstreamer1.0-libav")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopencv-dev, parallel, slurm-client")
include(CPack)
