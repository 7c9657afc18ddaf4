# What to generate code for: the C compiler is asked, with the flags that the library will be compiled with.
include_guard(GLOBAL)

# Targets that carry a platform's flags in their INTERFACE options, where CMAKE_C_FLAGS has none: Zephyr, Mbed CE.
set_property(GLOBAL PROPERTY AOT_MODEL_FLAGS_FROM zephyr_interface mbed-core-flags)

# Compiles <library> with the flags of targets: those of FLAGS_FROM, else the platform's. Programs around a library
# (aot_model_test() …) take them from there.
function(_aot_model_take_flags library call given)
    if (NOT given)
        get_property(known GLOBAL PROPERTY AOT_MODEL_FLAGS_FROM)
        foreach (target IN LISTS known)
            if (TARGET "${target}")
                list(APPEND given "${target}")
            endif ()
        endforeach ()
        if (COMMAND idf_build_get_property AND ESP_PLATFORM)
            foreach (kind IN ITEMS COMPILE_OPTIONS C_COMPILE_OPTIONS)
                idf_build_get_property(options ${kind} GENERATOR_EXPRESSION)
                target_compile_options(${library} PRIVATE "${options}")
            endforeach ()
        endif ()
    endif ()
    foreach (target IN LISTS given)
        if (NOT TARGET "${target}")
            message(FATAL_ERROR "${call}: FLAGS_FROM ${target}: there is no such target")
        endif ()
        target_link_libraries(${library} PRIVATE "$<BUILD_INTERFACE:${target}>")
    endforeach ()
    set_target_properties(${library} PROPERTIES AOT_MODEL_FLAGS_FROM "${given}")
endfunction()

# Makes <library>.probe, an object that is compiled as <library> is and says in text for which processor: generator
# expressions, options of directories, of configurations and of linked libraries count, whenever they are added.
function(_aot_model_add_probe library)
    get_property(source GLOBAL PROPERTY AOT_MODEL_PROBE)
    set(probe "${library}.probe")
    add_library(${probe} OBJECT EXCLUDE_FROM_ALL "${source}")
    set_source_files_properties("${source}" PROPERTIES SKIP_LINTING ON)
    foreach (kind IN ITEMS COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES)
        set_property(TARGET ${probe} PROPERTY ${kind} "$<TARGET_PROPERTY:${library},${kind}>")
    endforeach ()
    if (CMAKE_C_COMPILER_ID MATCHES "^(GNU|.*Clang)$")
        target_compile_options(${probe} PRIVATE -fno-lto -w)  # the text is in the object as it is
    endif ()
    set_target_properties(${probe} PROPERTIES
        EXPORT_COMPILE_COMMANDS OFF
        FOLDER AotModel
        INTERPROCEDURAL_OPTIMIZATION OFF
    )
    foreach (configuration IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE)
        string(TOUPPER "${configuration}" configuration)
        set_property(TARGET ${probe} PROPERTY INTERPROCEDURAL_OPTIMIZATION_${configuration} OFF)
    endforeach ()
endfunction()

# Memory regions of Zephyr's device tree in the values of a call: `<pool>=&<label>` becomes the region's linker section,
# `<pool>:&<label>` its size.
function(_aot_model_take_regions call)
    foreach (variable IN LISTS ARGN)
        set(values "${${variable}}")
        foreach (value IN LISTS values)
            if (NOT value MATCHES "^([^:=]+)([:=])&([A-Za-z0-9_]+)(.*)$")
                continue()
            endif ()
            set(name "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
            set(kind "${CMAKE_MATCH_2}")
            set(label "${CMAKE_MATCH_3}")
            set(rest "${CMAKE_MATCH_4}")
            if (NOT COMMAND dt_nodelabel)
                message(FATAL_ERROR "${call}: ${value}: there is no device tree here: &<label> is for Zephyr")
            endif ()
            dt_nodelabel(node NODELABEL "${label}")
            if (NOT node)
                message(FATAL_ERROR "${call}: ${value}: the device tree has no node that is labelled ${label}")
            endif ()
            if (kind STREQUAL "=")
                dt_prop(found PATH "${node}" PROPERTY "zephyr,memory-region")
                string(REGEX REPLACE "[^A-Za-z0-9]" "_" found "${found}")  # as the linker script has it
            else ()
                dt_reg_size(found PATH "${node}")
                if (found)
                    math(EXPR found "${found}")
                endif ()
            endif ()
            if (NOT found)
                message(FATAL_ERROR "${call}: ${value}: the node ${node} is no memory region (compatible \"zephyr,memory-region\")")
            endif ()
            list(TRANSFORM values REPLACE "^${name}&${label}" "${name}${found}")
        endforeach ()
        set(${variable} "${values}" PARENT_SCOPE)
    endforeach ()
endfunction()

# C99 or newer, also for a compiler of which CMake knows no features (CMAKE_C_COMPILER_FORCED).
function(_aot_model_require_c99 target)
    if (CMAKE_C_COMPILE_FEATURES)
        target_compile_features(${target} PRIVATE c_std_99)
    elseif (NOT CMAKE_C_STANDARD OR CMAKE_C_STANDARD EQUAL 90)
        set_target_properties(${target} PROPERTIES C_STANDARD 99)
    endif ()
endfunction()
